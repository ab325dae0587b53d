// Cross-origin resource sharing (CORS): lets web pages of listed origins read answers. Off unless origins are listed.
// Shape   header lines as in a head, each one preceded by CRLF.
// Owner   the server's configuration.
// Thread  any; it never changes.
// Source  the Fetch standard; the flags are vLLM's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/wire/exchange.h"

namespace quire::api::http {

struct CorsRules {
  std::vector<std::string> origins{};  // "https://app.example.org"; "*": any; empty: CORS is off
  bool credentials = false;            // requests may carry credentials, such as cookies
  std::vector<std::string> methods = {"*"};
  std::vector<std::string> headers = {"*"};  // request headers
};

// Headers of a preflight: a browser's question before a request that an HTML form could not send.
struct Preflight {
  std::string origin;
  std::string method;   // Access-Control-Request-Method
  std::string headers;  // Access-Control-Request-Headers
};

// True if web pages of `origin` may read answers of `path`. Never true below /admin/, whatever the rules allow.
bool may_share(const CorsRules& rules, std::string_view path, std::string_view origin);

// Header lines of an answer to a web page of that origin; empty: there are none.
std::string cors_lines(const CorsRules& rules, std::string_view path, std::string_view origin);

Response answer_preflight(const CorsRules& rules, std::string_view path, const Preflight& preflight);

// Error text for an invalid origin in the rules; empty: all are valid.
std::string fault_of(const CorsRules& rules);

}  // namespace quire::api::http
