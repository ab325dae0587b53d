#include "core/text/byte_level.h"

#include "core/text/unicode/utf8.h"

namespace quire::text {
namespace {

constexpr std::size_t kNumLetters = 0x100 + 68;

constexpr std::array<std::int16_t, kNumLetters> kByteOfLetter = [] {
  std::array<std::int16_t, kNumLetters> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (std::int16_t byte = 0; byte < 256; ++byte) bytes[kByteLevelAlphabet[static_cast<std::size_t>(byte)]] = byte;
  return bytes;
}();

}  // namespace

void append_byte_level(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) {
    const char16_t letter = kByteLevelAlphabet[static_cast<unsigned char>(byte)];
    if (letter < 0x80) {
      out += static_cast<char>(letter);
    } else {
      append_utf8(out, letter);
    }
  }
}

std::optional<std::string> bytes_of_byte_level(std::string_view valid_token) {
  std::string bytes;
  for (std::size_t at = 0; at < valid_token.size();) {
    const char32_t letter = next_code_point(valid_token, at);
    if (letter >= kNumLetters || kByteOfLetter[letter] < 0) return std::nullopt;
    bytes += static_cast<char>(kByteOfLetter[letter]);
  }
  return bytes;
}

}  // namespace quire::text
