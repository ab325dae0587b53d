#include "app/operate/admin_client.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "api/wire/text.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

constexpr const char* kRequests = "/admin/requests";

Url server_of(const std::string& text) {
  const Result<Url> url = parse_url(text, UrlSchemes::kHttpAndHttps);
  if (!url) throw StartError("--url " + url.error().message);
  return root_of(*url);
}

// RFC 3986, section 2.1: all but unreserved characters.
std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kUnreserved = "-._~";
  std::string out;
  for (const char c : text) {
    const bool is_plain = api::http::is_alpha(c) || (c >= '0' && c <= '9') || kUnreserved.find(c) != kUnreserved.npos;
    out += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string_view advice_on(const Error& error, bool has_key) {
  if (error.reason != nullptr && std::string_view(error.reason) == kUntrusted)
    return "\nGive the certificate of its authority, or its own: --cacert FILE";
  switch (error.code) {
    case Code::kUnauthorized:
      return has_key ? "\nGive another key in QUIRE_API_KEY: one of the role admin"
                     : "\nGive a key of the role admin in QUIRE_API_KEY";
    case Code::kForbidden:
      return "\nGive a key of the role admin in QUIRE_API_KEY, or ask the admin port by its address";
    case Code::kNotFound:
      return "\nIf the server has an admin port (--admin-port), give that: --url http://HOST:ADMIN_PORT. Otherwise it "
             "is "
             "no quire server, or an older one";
    default:
      return "\nGive the address of a running server: --url http://HOST:PORT";
  }
}

}  // namespace

AdminClient::AdminClient(const std::string& url, GetOptions options)
    : options_(std::move(options)), url_(server_of(url)) {}

boost::json::object AdminClient::list() const {
  const Result<std::string> body = ask("GET", kRequests);
  if (!body) fail(body.error());
  return object_of(*body);
}

std::optional<boost::json::object> AdminClient::explain(std::string_view id) const {
  return ask_about("GET", id, "/explain");
}

bool AdminClient::stop(std::string_view id) const { return ask_about("DELETE", id, "").has_value(); }

std::optional<boost::json::object> AdminClient::ask_about(std::string_view method, std::string_view id,
                                                          std::string_view what) const {
  const Result<std::string> body = ask(method, fmt::format("{}/{}{}", kRequests, percent_encoded(id), what));
  if (body) return object_of(*body);
  if (body.error().code != Code::kNotFound) fail(body.error());
  list();  // fails if it is the path that this port does not have
  return std::nullopt;
}

Result<std::string> AdminClient::ask(std::string_view method, const std::string& path) const {
  constexpr Duration kTimeout = std::chrono::seconds(10);
  try {
    return http_ask(method, url_, path, kTimeout, options_);
  } catch (const StartError& error) {
    throw StartError(fmt::format("--cacert {}", error.what()));
  }
}

void AdminClient::fail(const Error& error) const {
  throw StartError(fmt::format("--url {}{}", error.message, advice_on(error, !options_.key.empty())));
}

boost::json::object AdminClient::object_of(const std::string& body) const {
  boost::system::error_code error;
  boost::json::value value = boost::json::parse(body, error);
  if (error || !value.is_object()) {
    throw StartError(fmt::format("--url {}: this is not a quire server: its answer is no JSON object", url_.text));
  }
  return std::move(value.as_object());
}

}  // namespace quire::app
