// One GET of a small text from another server, for commands: wait, read, done.
// Thread  any; blocks for at most `timeout`, a name that has to be resolved besides.
// Fails   a Result with a text for people: no such URL, nobody listens, no answer in time, an answer that is no 200.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/result.h"

namespace quire::app {

struct Url {
  std::string host;         // without the brackets of an IPv6 address
  std::uint16_t port = 80;  // 443 where it begins with https
  std::string path;         // "" or "/a/b", without a slash at the end
  std::string text;         // all of it, as messages say it
  bool https = false;
};

enum class UrlSchemes : std::uint8_t { kHttp, kHttpAndHttps };

// "http://127.0.0.1:8000", "http://[::1]:8000/behind/a/proxy/".
Result<Url> parse_url(std::string_view text, UrlSchemes schemes = UrlSchemes::kHttp);

// The body of `path`, below the URL's own. With a key it is sent as Authorization: Bearer.
Result<std::string> http_get(const Url& url, std::string_view path, Duration timeout, std::string_view key = {});

}  // namespace quire::app
