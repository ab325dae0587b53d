// Grammars as text, in the form of llama.cpp's GBNF files, which vLLM takes too:  root ::= "yes" | "no" [.!]?
// Shape   name ::= alternatives, with | between them; "literals", [classes] and [^classes] of Unicode characters, . for
//         any of them, rules by their name (letters, digits, - and _), ( ), and behind any of these * + ? {m} {m,}
//         {m,n}; # begins a comment. A rule goes on until the next name with ::= behind it, over as many lines as it
//         likes. In literals and classes \n \r \t \xHH \uHHHH \UHHHHHHHH, and \ before any other mark. The text is a
//         match of `root`. Rules may be left-recursive.
// Fails   kInvalidArgument (no param: the caller knows the field) with line and column; for a rule without definition,
//         or with two; beyond the limits of grammar_text.h. What no automaton can be made of, compile() refuses.
// Thread  any one at a time, as its Rules.
// Source  llama.cpp grammars/README.md, read as documentation; where a rule ends is as in XGrammar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/result.h"
#include "core/grammar/rules.h"

namespace quire::grammar {

Result<RuleId> ebnf(Rules& rules, std::string_view text);  // root's: 0 where `rules` were empty

}  // namespace quire::grammar
