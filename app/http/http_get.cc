#include "app/http/http_get.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "app/http/http_client.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

constexpr std::uint32_t kMaxHeadBytes = 16 * 1024;
constexpr std::uint64_t kMaxBodyBytes = std::uint64_t{16} << 20;
constexpr int kOk = 200;

Error failed(const Url& url, const std::string& what) { return invalid("", fmt::format("{}: {}", url.text, what)); }

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

Result<std::string> http_get(const Url& url, std::string_view path, Duration timeout, std::string_view key) {
  HttpClient client(url, kMaxHeadBytes, kMaxBodyBytes);
  HttpClient::Fields fields;
  if (!key.empty()) fields.emplace_back("Authorization", "Bearer " + std::string(key));
  Result<HttpReply> reply = client.send("GET", path, fields, {}, timeout);
  if (!reply && client.connected()) {
    return failed(url, fmt::format("no answer to GET {} ({})", path, reply.error().message));
  }
  if (!reply) return failed(url, fmt::format("{}; is `quire serve` running?", reply.error().message));
  if (reply->status != kOk) return failed(url, fmt::format("GET {} was answered with status {}", path, reply->status));
  return std::move(reply->body);
}

}  // namespace quire::app
