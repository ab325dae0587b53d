// Sets of Unicode characters, as the front ends read and write them.
// Shape   ranges ascending, not adjacent, without surrogates: every set has one form.
// Owner   values. Thread  any.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/rules/rules.h"

namespace quire::grammar {

// Scalar values from first to last, both included.
struct CodePoints {
  char32_t first = 0;
  char32_t last = 0;
  friend auto operator<=>(const CodePoints&, const CodePoints&) = default;
};
using CodePointSet = std::vector<CodePoints>;

inline constexpr char32_t kLastCodePoint = 0x10FFFF;
inline bool is_surrogate(char32_t c) { return c >= 0xD800 && c <= 0xDFFF; }
inline bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
std::optional<std::uint32_t> hex_digit(char32_t c);  // its value; none: not a digit

CodePointSet united(CodePointSet ranges);  // in any order, overlapping or not
CodePointSet all_but(const CodePointSet& set);

// Matches the UTF-8 of one character of the set; an empty set matches nothing.
Expr emit_utf8(Rules& rules, std::span<const CodePoints> ranges);

std::optional<std::u32string> decode_utf8(std::string_view text);  // none: not UTF-8
void append_utf8(std::string& text, char32_t c);

}  // namespace quire::grammar
