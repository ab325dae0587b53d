// One request for a small text from another server, for commands.
// Thread  any; blocks for at most `timeout` plus the time of a name lookup.
// Fails   an error with a readable text: kInvalidArgument for an invalid URL; kUnauthorized, kForbidden and kNotFound
//         for those statuses; kUnavailable for no connection, no answer in time and other statuses than 200.
//         StartError: the CA file cannot be used.
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

// Error::reason: the server's certificate is not signed by an authority that the client trusts.
inline constexpr const char* kUntrusted = "untrusted_certificate";

struct GetOptions {
  std::string key{};      // sent as Authorization: Bearer; empty: none
  std::string ca_file{};  // PEM certificates that an https server may be signed by; empty: the system's
};

// The server's root from the URL of its API or of its metrics as clients have them, which end with /v1 and /metrics.
Url root_of(Url url);

// The body of the answer to `method` on `path`, appended to the URL's own.
Result<std::string> http_ask(std::string_view method, const Url& url, std::string_view path, Duration timeout,
                             const GetOptions& options);
Result<std::string> http_get(const Url& url, std::string_view path, Duration timeout, const GetOptions& options = {});

}  // namespace quire::app
