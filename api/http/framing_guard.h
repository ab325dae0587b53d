// Decides where a request ends before anything else looks at it: strict where parsers differ, so that nothing is smuggled.
// Rules   lines end in CRLF; no folding, no space before a colon, no control characters; one Host in HTTP/1.1; at most one
//         Content-Length, digits only; Transfer-Encoding is exactly `chunked`, alone, without Content-Length, not in HTTP/1.0.
// Shape   head: request line, fields and the empty line, as received.
// Thread  any; pure functions.
// Fails   a Refusal; the connection must be closed after its reply.
// Source  RFC 9112 sections 2, 3, 5, 6, 11.2; RFC 9110 10.1.1. The installable Beast is older than its own fixes of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace quire::api::http {

// Why a request is refused before it has a route. api/openai/errors.cc gives each its status.
enum class Fault : std::uint8_t {
  kMalformed,
  kHeadTooLarge,
  kBodyTooLarge,
  kUnknownExpectation,
  kUnsupportedVersion,
  kTooSlow,
};

struct Refusal {
  Fault fault;
  std::string message;
};

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

// Bytes of the head, or 0 while its end has not come. Bytes that cannot become a request are refused as soon as that
// is seen. `seen` bytes were looked at by an earlier call.
std::variant<std::size_t, Refusal> find_head_end(std::string_view bytes, std::size_t seen, const FramingLimits& limits);

std::variant<Framing, Refusal> inspect_head(std::string_view head, const FramingLimits& limits);

// Of a head that may have been refused: what its first line names; empty where there is nothing of that shape.
std::string_view target_of(std::string_view head);

// "/v1/models?x=y" and "http://host/v1/models" → "/v1/models"; empty when the target has no path we serve.
std::string_view path_of(std::string_view target);

}  // namespace quire::api::http
