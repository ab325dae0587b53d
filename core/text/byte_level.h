// GPT-2's byte alphabet: each byte as a printable character. 'A' is A, a blank is Ġ, a line feed is Ċ.
// Source  openai/gpt-2, encoder.py, bytes_to_unicode().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quire::text {

// Printable bytes map to themselves; the other 68 map to U+0100 and up, in order.
constexpr std::array<char16_t, 256> byte_level_alphabet() {
  std::array<char16_t, 256> letters{};
  char16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    letters[byte] = prints ? static_cast<char16_t>(byte) : next++;
  }
  return letters;
}
inline constexpr std::array<char16_t, 256> kByteLevelAlphabet = byte_level_alphabet();

void append_byte_level(std::string& out, std::string_view bytes);

// The bytes that a token spells; nullopt if a character is not of the alphabet.
std::optional<std::string> bytes_of_byte_level(std::string_view valid_token);

}  // namespace quire::text
