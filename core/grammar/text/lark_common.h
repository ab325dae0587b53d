// The terminals of lark's common.lark, as regular expressions.
// Source  lark's grammars/common.lark; quoted strings and C comments end at their first possible end, as in its lexers.
#pragma once

#include <string_view>

namespace quire::grammar {

// Empty if there is no terminal of that name.
std::string_view common_terminal(std::string_view name);

}  // namespace quire::grammar
