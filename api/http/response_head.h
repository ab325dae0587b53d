// The bytes before a body: status line and fields.
// Thread  any; a pure function, but for the clock behind Date.
// Source  RFC 9112 section 4, RFC 9110 section 6.6.1 (Date).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/exchange.h"

namespace quire::api::http {

struct HeadFacts {
  std::string_view request_id;  // empty: none is said
  bool http_1_1 = true;         // of the request
  bool keep_alive = true;
  std::optional<std::size_t> body_bytes;  // empty: chunked in HTTP/1.1, until the close in HTTP/1.0
  bool of_anthropics = false;             // its clients look for the id under another name, too
  std::string_view more{};                // whole lines, each behind a CRLF
};

std::string response_head(const Response& response, const HeadFacts& facts);

// The client's X-Request-Id where it is short and plain, else one of ours.
std::string request_id_of(std::string_view given);
std::string random_id();  // 128 random bits, in hexadecimal
// Of 1 to `max_bytes` letters, digits and - _ . : alone.
bool is_plain_id(std::string_view text, std::size_t max_bytes);

}  // namespace quire::api::http
