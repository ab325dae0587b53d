// Texts that may say anything but what has a meaning where they stand: an answer before its first call, reasoning before its end.
// Shape   well-formed UTF-8, the empty text too.
// Thread  any one at a time, as their Rules.
// Fails   CHECK: a mark of more than 64 bytes, or one that begins as it ends ("aba"): its first place would be ambiguous.
// Source  Knuth, Morris and Pratt 1977, as a difference of regular sets (schema/language.h).
#pragma once

#include <span>
#include <string_view>

#include "core/grammar/rules.h"

namespace quire::grammar {

Expr any_text(Rules& rules);
// Every text in which no part is one of `marks`. `blank_and` (none where empty): nor does it begin with white space and this.
Expr text_without(Rules& rules, std::span<const std::string_view> marks, std::string_view blank_and = {});
// Every text up to its first `mark`, and that.
Expr text_until(Rules& rules, std::string_view mark);

}  // namespace quire::grammar
