// Rewrites left-recursive rules, which the automaton cannot follow, into rules of the same language that are not:
//   sum ::= sum "+" term | term   →   sum ::= term ("+" term)*
// Shape   changes only left-recursive rules from `first` on, directly recursive or through others. Left unchanged, for
//         compile() to reject: a cycle of more than 24 rules, a cycle through one of its own rules that may be empty or
//         through a repetition of something that may be, and a cycle through a sequence of more than 128 parts.
// Thread  any one at a time, as its Rules.
// Fails   never.
// Source  Gaussian elimination over left-linear equations (Hopcroft & Ullman, regular expressions of an automaton),
//         with the grammar's other rules as its letters.
#pragma once

#include "core/grammar/rules/rules.h"

namespace quire::grammar {

void remove_left_recursion(Rules& rules, RuleId first);

}  // namespace quire::grammar
