// Checks a request's head and finds its framing before any other parser reads it. Strict wherever parsers differ,
// against request smuggling.
// Rules   lines end in CRLF; no folding, no space before a colon, no control characters; exactly one Host in HTTP/1.1;
//         at most one Content-Length, digits only; Transfer-Encoding is exactly `chunked`, once, without
//         Content-Length, not in HTTP/1.0.
// Shape   head: request line, header fields and the empty line, as received.
// Thread  any; pure functions.
// Fails   a Refusal; the connection must be closed after its reply.
// Source  RFC 9112 sections 2, 3, 5, 6, 11.2; RFC 9110 10.1.1. The packaged Beast (1.81) lacks its own later fixes of
//         these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "api/wire/fault.h"

namespace quire::api::http {

struct Framing {
  std::string_view method;
  std::string_view target;  // both views into the head
  bool http_1_1 = true;
  bool chunked = false;
  std::uint64_t content_length = 0;
  bool keep_alive = true;
  bool expects_continue = false;
};

struct FramingLimits {
  std::size_t head_bytes;
  std::size_t head_fields;
  std::size_t body_bytes;
};

// Size of the head in bytes, or 0 while its end has not arrived. Bytes that cannot become a request are refused at
// once. `seen` bytes were checked by an earlier call.
std::variant<std::size_t, Refusal> find_head_end(std::string_view bytes, std::size_t seen, const FramingLimits& limits);

std::variant<Framing, Refusal> inspect_head(std::string_view head, const FramingLimits& limits);

// Target in the first line of a head, even of a refused one; empty if the line has none.
std::string_view target_of(std::string_view head);

// "/v1/models?x=y" and "http://host/v1/models" → "/v1/models"; empty if the target has no path, such as "*".
std::string_view path_of(std::string_view target);

}  // namespace quire::api::http
