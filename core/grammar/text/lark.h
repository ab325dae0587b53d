// Parser of grammars in the form of the Python package lark:
//   start: "yes" | "no" PLACE?      PLACE: /[A-Z][a-z]+/      %import common.WS      %ignore WS
// Shape   name: alternatives separated by |, up to the end of the line; a line that begins with | continues the rule.
//         Lower-case names are rules, upper-case names terminals, which contain no rules and not themselves. Atoms:
//         "literals", "a".."z", /regular expressions/ in Python's syntax (regex.h), names, ( ), and [ ] for optional
//         parts. Repetition: * + ? ~m ~m..n {m} {m,} {,n} {m,n}. "..."i and /.../i ignore the case of ASCII letters;
//         flags s, x, m and u. // and # begin comments. ?name, !name, _name, priorities and aliases are accepted
//         without effect. %import common.X imports lark's common terminals. %ignore: text allowed before, between and
//         after the terminals of rules. The text must match `start`. Rules may be left-recursive. Terminals need not
//         match as much as possible: any way to read the text counts.
// Fails   kInvalidArgument (no param: the caller knows the field) with line and column: a syntax error, undefined or
//         twice defined names, the limits of grammar_text.h, and features that are not supported, which the message
//         names: templates, %declare, %override, %extend, imports of other files, llguidance's %json, rule options and
//         special tokens. compile() rejects grammars that no automaton can be made of.
// Thread  any one at a time, as its Rules.
// Source  lark's documentation of its grammar; is_lark() decides as vLLM does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/result.h"
#include "core/grammar/rules/rules.h"

namespace quire::grammar {

// True if no line has ::= outside comments, which would make it EBNF.
bool is_lark(std::string_view text);

Result<RuleId> lark(Rules& rules, std::string_view text);  // of `start`; 0 if `rules` was empty

}  // namespace quire::grammar
