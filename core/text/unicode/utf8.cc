#include "core/text/unicode/utf8.h"

namespace quire::text {
namespace {

// Length of the character that a lead byte announces; 0 for bytes that begin no character.
std::size_t announced_bytes(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0;
}

// The second byte has a narrower range after some leads: no overlong forms, no surrogates, nothing above U+10FFFF.
bool second_byte_fits(unsigned char lead, unsigned char second) {
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return low <= second && second <= high;
}

}  // namespace

Utf8Head utf8_head(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t announced = announced_bytes(lead);
  if (announced == 0) return {Utf8Head::Kind::kInvalid, 1};
  for (std::size_t i = 1; i < announced; ++i) {
    if (i == text.size()) return {Utf8Head::Kind::kIncomplete, i};
    const bool fits =
        i == 1 ? second_byte_fits(lead, static_cast<unsigned char>(text[1])) : is_continuation_byte(text[i]);
    if (!fits) return {Utf8Head::Kind::kInvalid, i};
  }
  return {Utf8Head::Kind::kCharacter, announced};
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Head head = utf8_head(text.substr(at));
    if (head.kind != Utf8Head::Kind::kCharacter) return false;
    at += head.bytes;
  }
  return true;
}

std::string with_replacement_characters(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Head head = utf8_head(text);
    out += head.kind == Utf8Head::Kind::kCharacter ? text.substr(0, head.bytes) : kReplacementCharacter;
    text.remove_prefix(head.bytes);
  }
  return out;
}

void append_utf8(std::string& out, char32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

std::u32string code_points(std::string_view text) {
  std::u32string codes;
  codes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) codes += next_code_point(text, at);
  return codes;
}

std::string utf8_of(std::u32string_view codes) {
  std::string out;
  out.reserve(codes.size());
  for (const char32_t code : codes) append_utf8(out, code);
  return out;
}

}  // namespace quire::text
