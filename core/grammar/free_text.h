// Rules of free text up to a mark that has a meaning: an answer before its first tool call, reasoning before its end.
// Shape   well-formed UTF-8; may be empty.
// Thread  any one at a time, as their Rules.
// Fails   CHECK: a mark that is empty or has more than 64 bytes; of text_until() also one that begins as it ends
//         ("aba"), because the place of its first occurrence would be ambiguous.
// Source  Knuth, Morris and Pratt 1977, as a difference of regular sets (language/language.h).
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "core/grammar/rules/rules.h"

namespace quire::grammar {

Expr any_text(Rules& rules);
// Matches every text that contains none of `marks`, and that does not begin with white space (or none) and a text of
// `begins`, which writes an expression without rules.
using Beginnings = std::function<Expr(Rules& rules)>;
Expr text_without(Rules& rules, std::span<const std::string_view> marks, const Beginnings& begins = {});
// Matches every text that ends with its first `mark`.
Expr text_until(Rules& rules, std::string_view mark);

}  // namespace quire::grammar
