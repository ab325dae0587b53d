// One GET of a small text from another server, for commands.
// Thread  any; blocks for at most `timeout` plus the time of a name lookup.
// Fails   an error with a readable text: an invalid URL, no connection, no answer in time, a status other than 200.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/result.h"

namespace quire::app {

struct Url {
  std::string host;         // without the brackets of an IPv6 address
  std::uint16_t port = 80;  // 443 for https
  std::string path;         // "" or "/a/b", without a trailing slash
  std::string text;         // the whole URL, for messages
  bool https = false;
};

enum class UrlSchemes : std::uint8_t { kHttp, kHttpAndHttps };

// "http://127.0.0.1:8000", "http://[::1]:8000/behind/a/proxy/".
Result<Url> parse_url(std::string_view text, UrlSchemes schemes = UrlSchemes::kHttp);

// The body of `path`, appended to the URL's own. A key is sent as Authorization: Bearer.
Result<std::string> http_get(const Url& url, std::string_view path, Duration timeout, std::string_view key = {});

}  // namespace quire::app
