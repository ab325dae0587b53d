// Parser of grammars in the form of llama.cpp's GBNF files, which vLLM takes too:  root ::= "yes" | "no" [.!]?
// Shape   name ::= alternatives, with | between them; "literals", [classes] and [^classes] of Unicode characters, . for
//         any of them, rules by their name (letters, digits, - and _), ( ), and after any of these * + ? {m} {m,} {,n}
//         {m,n}; # begins a comment. A rule ends at the next `name ::=` and may span lines. In literals and classes \n
//         \r \t \xHH \uHHHH \UHHHHHHHH, and \ before any other character but letters and digits. The text must match
//         `root`. Rules may be left-recursive.
// Fails   kInvalidArgument (no param: the caller knows the field) with line and column: a syntax error, a rule without
//         definition or with two, and beyond the limits of grammar_text.h. compile() rejects grammars that no automaton
//         can be made of.
// Thread  any one at a time, as its Rules.
// Source  llama.cpp grammars/README.md, read as documentation; a rule ends as in XGrammar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/result.h"
#include "core/grammar/rules/rules.h"

namespace quire::grammar {

Result<RuleId> ebnf(Rules& rules, std::string_view text);  // of `root`; 0 if `rules` was empty

}  // namespace quire::grammar
