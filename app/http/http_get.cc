#include "app/http/http_get.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "api/wire/errors.h"
#include "app/http/http_client.h"
#include "core/base/json.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

constexpr int kOk = 200;

Error failed(const Url& url, Code code, const std::string& what, const char* reason = nullptr) {
  return {code, fmt::format("{}: {}", url.text, what), "", 0, reason};
}

Code code_of(int status) {
  for (const Code code : {Code::kUnauthorized, Code::kForbidden, Code::kNotFound}) {
    if (status == api::status_of(code)) return code;
  }
  return Code::kUnavailable;
}

// ": " and the message of an error in OpenAI's shape; empty: the body is no such error.
std::string message_in(const std::string& body) {
  constexpr std::size_t kMaxDepth = 16;
  const Result<json::Value> value = json::parse(body, kMaxDepth);
  const json::Object* object = value ? value->if_object() : nullptr;
  const json::Value* error = object == nullptr ? nullptr : object->if_contains("error");
  const json::Object* fields = error == nullptr ? nullptr : error->if_object();
  const json::Value* message = fields == nullptr ? nullptr : fields->if_contains("message");
  return message == nullptr || !message->is_string() ? "" : ": " + log_safe(message->get_string());
}

}  // namespace

Result<Url> parse_url(std::string_view text, UrlSchemes schemes) {
  const bool https = schemes == UrlSchemes::kHttpAndHttps && text.starts_with("https://");
  const std::string_view scheme = https ? "https://" : "http://";
  const Error no = invalid("", fmt::format("'{}': expected a URL such as http://127.0.0.1:8000", log_safe(text)));
  if (!text.starts_with(scheme)) return no;
  std::string_view rest = text.substr(scheme.size());
  std::string_view authority = rest.substr(0, rest.find('/'));
  std::string_view path = rest.substr(authority.size());
  while (path.ends_with('/')) path.remove_suffix(1);
  if (rest.find_first_of("?#@ ") != rest.npos) return no;

  constexpr std::uint16_t kHttpPort = 80;
  constexpr std::uint16_t kHttpsPort = 443;
  Url url{{}, https ? kHttpsPort : kHttpPort, std::string(path), std::string(text), https};
  const bool brackets = authority.starts_with('[');
  const std::size_t end = brackets ? authority.find(']') : authority.find(':');
  if (brackets && end == authority.npos) return no;
  url.host = authority.substr(brackets ? 1 : 0, brackets ? end - 1 : end);
  if (url.host.empty()) return no;
  authority.remove_prefix(end == authority.npos ? authority.size() : end + (brackets ? 1 : 0));
  if (authority.empty()) return url;
  const char* last = authority.data() + authority.size();
  const auto [stop, error] = std::from_chars(authority.data() + 1, last, url.port);
  if (authority.front() != ':' || error != std::errc() || stop != last || url.port == 0) return no;
  return url;
}

Url root_of(Url url) {
  for (const std::string_view end : {"/metrics", "/v1"}) {
    if (!url.path.ends_with(end)) continue;
    url.path.resize(url.path.size() - end.size());
    break;
  }
  return url;
}

Result<std::string> http_get(const Url& url, std::string_view path, Duration timeout, const GetOptions& options) {
  return http_ask("GET", url, path, timeout, options);
}

Result<std::string> http_ask(std::string_view method, const Url& url, std::string_view path, Duration timeout,
                             const GetOptions& options) {
  HttpClient client(url, {.ca_file = options.ca_file});
  HttpClient::Fields fields;
  if (!options.key.empty()) fields.emplace_back("Authorization", "Bearer " + options.key);
  Result<HttpReply> reply = client.send(method, path, fields, {}, timeout);
  if (!reply && client.connected()) {
    return failed(url, Code::kUnavailable, fmt::format("no answer to {} {} ({})", method, path, reply.error().message),
                  reply.error().reason);
  }
  if (!reply) {
    return failed(url, Code::kUnavailable, fmt::format("{}; is `quire serve` running?", reply.error().message));
  }
  if (reply->status != kOk) {
    return failed(
        url, code_of(reply->status),
        fmt::format("{} {} was answered with status {}{}", method, path, reply->status, message_in(reply->body)));
  }
  return std::move(reply->body);
}

}  // namespace quire::app
