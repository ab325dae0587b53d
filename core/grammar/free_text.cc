#include "core/grammar/free_text.h"

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "core/base/check.h"
#include "core/grammar/language/language.h"
#include "core/grammar/rules/code_points.h"

namespace quire::grammar {
namespace {

constexpr std::uint32_t kMaxStates = 50'000;  // far more than marks of this length can need
constexpr std::size_t kMaxMark = 64;

Expr in_order(Rules& rules, std::initializer_list<Expr> parts) { return rules.sequence({parts.begin(), parts.size()}); }

void check_mark(std::string_view mark) { CHECK(!mark.empty() && mark.size() <= kMaxMark); }

}  // namespace

Expr any_text(Rules& rules) { return rules.repeat(emit_utf8(rules, all_but({})), 0, kUnbounded); }

Expr text_without(Rules& rules, std::span<const std::string_view> marks, const Beginnings& begins) {
  Rules own;
  const Expr any = any_text(own);
  std::vector<Expr> texts;  // one alternative for all marks: several would be told apart by the states
  for (const std::string_view mark : marks) {
    check_mark(mark);
    texts.push_back(own.bytes(mark));
  }
  std::vector<Expr> excluded = {in_order(own, {any, own.choice(texts), any})};
  if (begins) {
    ByteSet blank;
    for (const unsigned char c : {' ', '\t', '\n', '\r'}) blank.set(c);
    excluded.push_back(in_order(own, {own.repeat(own.byte_set(blank), 0, kUnbounded), begins(own), any}));
  }
  StateBudget budget(kMaxStates);
  const Language forbidden = Language::of(own, own.choice(excluded), budget);
  return Language::of_utf8(budget).without(forbidden, budget).write(rules);
}

Expr text_until(Rules& rules, std::string_view mark) {
  for (std::size_t n = 1; n < mark.size(); ++n) CHECK(mark.substr(0, n) != mark.substr(mark.size() - n));
  return in_order(rules, {text_without(rules, {&mark, 1}), rules.bytes(mark)});
}

}  // namespace quire::grammar
