// Server-sent events and the chunks they travel in.
// Thread  any; pure functions.
// Source  WHATWG HTML, section 9.2 (event stream); RFC 9112 section 7.1 (chunked).
#pragma once

#include <charconv>
#include <string>
#include <string_view>

namespace quire::api::http {

inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
inline constexpr std::string_view kSseComment = ": keep-alive\n\n";  // says nothing: clients pass comments over
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

inline constexpr std::string_view kSseEvent = "data: ";  // then JSON, without line breaks: JSON text escapes them
inline constexpr std::string_view kSseEventEnd = "\n\n";

inline void append_event(std::string& out, std::string_view json) {
  out.append(kSseEvent).append(json).append(kSseEventEnd);
}

// One with a name.
inline void append_event(std::string& out, std::string_view name, std::string_view json) {
  out.append("event: ").append(name).append("\n");
  append_event(out, json);
}

// Nothing for empty data: an empty chunk would be the last one.
inline void append_chunk(std::string& out, std::string_view data) {
  if (data.empty()) return;
  char size[16];
  const auto end = std::to_chars(size, size + sizeof size, data.size(), 16);
  out.append(size, end.ptr).append("\r\n").append(data).append("\r\n");
}

}  // namespace quire::api::http
