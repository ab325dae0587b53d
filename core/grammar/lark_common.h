// The terminals of lark's common.lark, as regular expressions.
// Source  lark's grammars/common.lark; quoted strings and C comments as its lexers read them, which end at the first end.
#pragma once

#include <string_view>

namespace quire::grammar {

// Empty where there is none of that name.
std::string_view common_terminal(std::string_view name);

}  // namespace quire::grammar
