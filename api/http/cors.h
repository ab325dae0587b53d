// Cross-origin resource sharing: browsers let web pages of the named origins read our answers. Off unless origins are
// named.
// Shape   headers as a head has them, each line behind a CRLF.
// Owner   the server's configuration.  Thread  any; it never changes.
// Source  the Fetch standard; flags are vLLM's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/exchange.h"

namespace quire::api::http {

struct CorsRules {
  std::vector<std::string> origins{};  // "https://app.example.org"; "*": any; none: it is off
  bool credentials = false;            // with cookies and the like
  std::vector<std::string> methods = {"*"};
  std::vector<std::string> headers = {"*"};  // of a request
};

// The question of a browser before it sends a request that a form could not send.
struct Preflight {
  std::string origin;
  std::string method;   // Access-Control-Request-Method
  std::string headers;  // Access-Control-Request-Headers
};

// Orders to the server are for no other page, whatever is allowed.
bool may_share(const CorsRules& rules, std::string_view path, std::string_view origin);

// Of an answer to a page of that origin; empty: there are none.
std::string cors_lines(const CorsRules& rules, std::string_view path, std::string_view origin);

Response answer_preflight(const CorsRules& rules, std::string_view path, const Preflight& preflight);

// The reason why these are no rules; empty: they are.
std::string fault_of(const CorsRules& rules);

}  // namespace quire::api::http
