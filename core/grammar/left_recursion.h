// Rewrites rules that can begin with themselves, which no automaton of ours can follow, into rules of the same texts that cannot:
//   sum ::= sum "+" term | term   →   sum ::= term ("+" term)*
// Shape   only rules from `first` on, and of these only what is left-recursive, through other rules or not. Left alone, for compile()
//         to refuse: more than 24 rules in one circle, and a circle that goes through one of its own rules that may be empty, or through a
//         repetition of what may be.
// Thread  any one at a time, as its Rules.
// Fails   never.
// Source  Gaussian elimination over left-linear equations (Hopcroft & Ullman, regular expressions of an automaton), with the grammar's
//         other rules as its letters.
#pragma once

#include "core/grammar/rules.h"

namespace quire::grammar {

void remove_left_recursion(Rules& rules, RuleId first);

}  // namespace quire::grammar
