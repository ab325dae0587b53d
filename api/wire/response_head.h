// The head of a response: status line and header fields.
// Thread  any; pure functions, except for the clock behind Date and the random bits of ids.
// Source  RFC 9112 section 4, RFC 9110 section 6.6.1 (Date).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "api/wire/exchange.h"

namespace quire::api::http {

struct HeadFacts {
  std::string_view request_id;  // empty: the head has no X-Request-Id
  bool http_1_1 = true;         // version of the request
  bool keep_alive = true;
  std::optional<std::size_t> body_bytes;  // empty: chunked in HTTP/1.1, up to the close in HTTP/1.0
  bool of_anthropics = false;             // the id is written as request-id, too, for Anthropic's clients
  std::string_view more{};                // whole lines, each preceded by CRLF
};

std::string response_head(const Response& response, const HeadFacts& facts);

// The client's X-Request-Id if is_plain_id() accepts it, else a random_id().
std::string request_id_of(std::string_view given);
std::string random_id();  // 128 random bits, in hexadecimal
// True for 1 to `max_bytes` characters that are all letters, digits or one of - _ . :
bool is_plain_id(std::string_view text, std::size_t max_bytes);

}  // namespace quire::api::http
