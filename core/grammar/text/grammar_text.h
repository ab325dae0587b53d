// The text of a grammar while it is parsed, the position in it, and the first error: base of the EBNF and lark parsers.
// Owner   the parser. Thread  one at a time.
// Fails   functions return false after setting error_: kInvalidArgument with line and column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/result.h"
#include "core/grammar/rules/code_points.h"
#include "core/grammar/rules/rules.h"
#include "core/grammar/text/left_recursion.h"

namespace quire::grammar {

inline constexpr std::size_t kMaxGrammarBytes = 64 * 1024;
inline constexpr std::uint32_t kMaxGrammarDepth = 64;      // nested brackets
inline constexpr std::uint32_t kMaxGrammarCount = 10'000;  // of a repetition

class GrammarText {
 protected:
  explicit GrammarText(std::u32string text) : text_(std::move(text)) {}

  bool more() const { return at_ < text_.size(); }
  bool at(char32_t c) const { return more() && text_[at_] == c; }
  bool at(std::u32string_view s) const { return std::u32string_view(text_).substr(at_).starts_with(s); }
  bool take(char32_t c) { return at(c) && ++at_ > 0; }
  bool take(std::u32string_view s) {
    const bool there = at(s);
    if (there) at_ += s.size();
    return there;
  }
  bool number(std::uint32_t& out);                       // clamped to kMaxGrammarCount + 1
  std::optional<std::uint32_t> hex(std::size_t digits);  // clamped to 0x110000
  bool check_counts(std::size_t where, std::uint32_t least, std::uint32_t most);

  bool fail(std::size_t where, const std::string& what);
  Error error_at(std::size_t where, const std::string& what) const;

  std::u32string text_;
  std::size_t at_ = 0;
  std::optional<Error> error_;
};

Result<std::u32string> decoded_grammar(std::string_view text);

// Parses the text with Parser(rules, text).run(), removes left recursion, and returns the root rule.
template <typename Parser>
Result<RuleId> parse_grammar(Rules& rules, std::string_view text) {
  Result<std::u32string> decoded = decoded_grammar(text);
  if (!decoded) return decoded.error();
  const auto first = static_cast<RuleId>(rules.rules().size());
  Result<RuleId> root = Parser(rules, std::move(*decoded)).run();
  if (root) remove_left_recursion(rules, first);
  return root;
}

}  // namespace quire::grammar
