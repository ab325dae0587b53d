#include "core/grammar/rules/code_points.h"

#include <algorithm>

namespace quire::grammar {

CodePointSet united(CodePointSet ranges) {
  std::sort(ranges.begin(), ranges.end());
  CodePointSet set;
  const auto add = [&](char32_t first, char32_t last) {
    if (first > last) return;
    if (!set.empty() && first <= set.back().last + 1) {
      set.back().last = std::max(set.back().last, last);
    } else {
      set.push_back({first, last});
    }
  };
  for (const CodePoints& range : ranges) {
    add(range.first, std::min<char32_t>(range.last, 0xD7FF));
    add(std::max<char32_t>(range.first, 0xE000), std::min(range.last, kLastCodePoint));
  }
  return set;
}

CodePointSet all_but(const CodePointSet& set) {
  CodePointSet rest;
  char32_t next = 0;
  for (const CodePoints& range : set) {
    if (range.first > next) rest.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) rest.push_back({next, kLastCodePoint});
  return united(rest);
}

Expr emit_utf8(Rules& rules, std::span<const CodePoints> ranges) {
  std::vector<Expr> choices;
  for (const CodePoints& range : ranges) choices.push_back(rules.code_points(range.first, range.last));
  return choices.size() == 1 ? choices.front() : rules.choice(choices);
}

std::optional<std::u32string> decode_utf8(std::string_view text) {
  std::u32string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC0 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF8 ? 4
                                             : 0;
    if (length == 0 || length > text.size() - i) return std::nullopt;
    char32_t c = length == 1 ? lead : lead & (0x7F >> length);
    for (std::size_t k = 1; k < length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      if (byte >> 6 != 2) return std::nullopt;
      c = c << 6 | (byte & 0x3F);
    }
    constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (c < kLeast[length] || c > kLastCodePoint || is_surrogate(c)) return std::nullopt;
    out.push_back(c);
    i += length;
  }
  return out;
}

void append_utf8(std::string& text, char32_t c) {
  const auto byte = [&](char32_t bits) { text.push_back(static_cast<char>(bits)); };
  if (c <= 0x7F) {
    byte(c);
    return;
  }
  const int more = c <= 0x7FF ? 1 : c <= 0xFFFF ? 2 : 3;
  constexpr char32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  byte(kLead[more] | c >> (6 * more));
  for (int k = more; k-- > 0;) byte(0x80 | (c >> (6 * k) & 0x3F));
}

std::optional<std::uint32_t> hex_digit(char32_t c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

}  // namespace quire::grammar
