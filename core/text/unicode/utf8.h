// UTF-8 encoding and decoding; invalid UTF-8 is treated as Rust does.
// Shape   code points are char32_t; text that a function calls valid has no surrogates and no overlong forms.
// Source  Unicode 16.0, table 3-7 and section 3.9 (U+FFFD for each maximal subpart), as Rust's from_utf8_lossy does.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quire::text {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// The kind and length of a text's first bytes.
struct Utf8Head {
  enum class Kind {
    kCharacter,   // one whole character
    kInvalid,     // one maximal subpart: no character, regardless of later bytes
    kIncomplete,  // the whole text is the beginning of a character
  };
  Kind kind;
  std::size_t bytes;
};

// Requires text that is not empty.
Utf8Head utf8_head(std::string_view text);

bool is_utf8(std::string_view text);
std::string with_replacement_characters(std::string_view text);

inline bool is_continuation_byte(char byte) { return (static_cast<unsigned char>(byte) & 0xC0u) == 0x80u; }

// The character at text[at]; moves `at` past it. Requires valid text.
inline char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  const char32_t lead = byte(at);
  if (lead < 0x80) return at += 1, lead;
  if (lead < 0xE0) return at += 2, (lead & 0x1F) << 6 | (byte(at - 1) & 0x3F);
  if (lead < 0xF0) return at += 3, (lead & 0x0F) << 12 | (byte(at - 2) & 0x3F) << 6 | (byte(at - 1) & 0x3F);
  at += 4;
  return (lead & 0x07) << 18 | (byte(at - 3) & 0x3F) << 12 | (byte(at - 2) & 0x3F) << 6 | (byte(at - 1) & 0x3F);
}

// Start of the character before text[at]. Requires valid text and at > 0.
inline std::size_t previous_character(std::string_view text, std::size_t at) {
  do --at;
  while (is_continuation_byte(text[at]));
  return at;
}

void append_utf8(std::string& out, char32_t code);

std::u32string code_points(std::string_view text);  // of valid text
std::string utf8_of(std::u32string_view codes);

}  // namespace quire::text
