// Server-sent events, and the chunks of HTTP/1.1 that carry them.
// Thread  any; pure functions.
// Source  WHATWG HTML, section 9.2 (event stream); RFC 9112 section 7.1 (chunked).
#pragma once

#include <charconv>
#include <string>
#include <string_view>

namespace quire::api::http {

inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
inline constexpr std::string_view kSseComment = ": keep-alive\n\n";  // clients ignore comments
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

inline constexpr std::string_view kSseEvent = "data: ";  // followed by JSON, which has no line breaks
inline constexpr std::string_view kSseEventEnd = "\n\n";

inline void append_event(std::string& out, std::string_view json) {
  out.append(kSseEvent).append(json).append(kSseEventEnd);
}

// Appends a named event.
inline void append_event(std::string& out, std::string_view name, std::string_view json) {
  out.append("event: ").append(name).append("\n");
  append_event(out, json);
}

// Appends a chunk; nothing for empty data, because an empty chunk ends the body.
inline void append_chunk(std::string& out, std::string_view data) {
  if (data.empty()) return;
  char size[16];
  const auto end = std::to_chars(size, size + sizeof size, data.size(), 16);
  out.append(size, end.ptr).append("\r\n").append(data).append("\r\n");
}

// Returns a chunk. A function, because g++ 12 copies a braced temporary inside a co_await expression bytewise and
// destroys it twice: an object that owns memory must be returned by a function or named before the co_await.
inline std::string chunk_of(std::string_view part, bool last) {
  std::string chunk;
  append_chunk(chunk, part);
  if (last) chunk += kLastChunk;
  return chunk;
}

}  // namespace quire::api::http
