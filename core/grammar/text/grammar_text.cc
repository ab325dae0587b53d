#include "core/grammar/text/grammar_text.h"

#include <algorithm>

namespace quire::grammar {

Error GrammarText::error_at(std::size_t where, const std::string& what) const {
  const auto before = std::u32string_view(text_).substr(0, where);
  const auto line = std::count(before.begin(), before.end(), U'\n') + 1;
  const std::size_t line_end = before.rfind(U'\n');
  const std::size_t column = line_end == before.npos ? where + 1 : where - line_end;
  return invalid({}, "grammar, line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + what);
}

bool GrammarText::fail(std::size_t where, const std::string& what) {
  if (!error_) error_ = error_at(where, what);
  return false;
}

bool GrammarText::number(std::uint32_t& out) {
  const std::size_t begin = at_;
  std::uint32_t value = 0;
  for (; more() && is_digit(text_[at_]); ++at_) value = std::min(kMaxGrammarCount + 1, 10 * value + (text_[at_] - '0'));
  if (at_ > begin) out = value;
  return at_ > begin;
}

std::optional<std::uint32_t> GrammarText::hex(std::size_t digits) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < digits; ++i, ++at_) {
    const auto digit = more() ? hex_digit(text_[at_]) : std::nullopt;
    if (!digit) return std::nullopt;
    value = std::min<std::uint64_t>(kLastCodePoint + 1, 16 * value + *digit);
  }
  return static_cast<std::uint32_t>(value);
}

bool GrammarText::check_counts(std::size_t where, std::uint32_t least, std::uint32_t most) {
  if (least > most) return fail(where, "the numbers are out of order");
  if (least <= kMaxGrammarCount && (most <= kMaxGrammarCount || most == kUnbounded)) return true;
  return fail(where, "repeats more than " + std::to_string(kMaxGrammarCount) + " times");
}

Result<std::u32string> decoded_grammar(std::string_view text) {
  if (text.size() > kMaxGrammarBytes) {
    return invalid({}, "the grammar has more than " + std::to_string(kMaxGrammarBytes) + " bytes");
  }
  std::optional<std::u32string> decoded = decode_utf8(text);
  if (!decoded) return invalid({}, "the grammar is not UTF-8");
  return *std::move(decoded);
}

}  // namespace quire::grammar
