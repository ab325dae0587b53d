// Grammars as text, in the form of the Python package lark:
//   start: "yes" | "no" PLACE?      PLACE: /[A-Z][a-z]+/      %import common.WS      %ignore WS
// Shape   name: alternatives, with | between them, up to the line's end; a line that begins with | goes on. Names in lower case are
//         rules, those in upper case terminals, which hold no rules and not themselves. "literals", "a".."z", /regular
//         expressions/ in Python's syntax (regex.h), names, ( ), [ ] for what may be left out, and behind any of these * + ? ~m
//         ~m..n {m} {m,} {m,n}; "..."i and /.../i without regard to the case of ASCII letters, flags s, x, m and u; // and #
//         begin comments. What makes no difference to a text is read and passed over: ?name, !name, _name, priorities, aliases.
//         %import common.X and what follows from lark's common.lark; %ignore: may stand before, behind and between terminals of
//         rules. The text is a match of `start`. A rule may begin with itself. Longest matches are not asked for: every way to
//         read a text counts.
// Fails   kInvalidArgument (no param: the caller knows the field) with line and column; for a name without definition, or with
//         two; for templates, %declare, %override, %extend, imports of other files, and what llguidance adds (%json, options in
//         [ ], <special tokens>), each by name; beyond the limits. What no automaton can be made of, compile() refuses.
// Thread  any one at a time, as its Rules.
// Source  lark's documentation of its grammar; is_lark() decides as vLLM does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/result.h"
#include "core/grammar/rules.h"

namespace quire::grammar {

// No line of it has ::= outside comments: then it is no EBNF.
bool is_lark(std::string_view text);

Result<RuleId> lark(Rules& rules, std::string_view text);  // start's: 0 where `rules` were empty

}  // namespace quire::grammar
