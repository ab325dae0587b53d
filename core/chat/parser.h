// Parses a template's source into statements; unsupported syntax is an error with its line.
// Thread  any.
// Fails   TemplateError: wrong syntax, an unsupported statement, an unknown filter or test outside of any if (inside an
//         if it fails when evaluated, as in jinja2), nesting beyond kMaxTreeDepth.
// Source  jinja2 3.1.6's grammar with the loop controls and transformers' {% generation %}.
#pragma once

#include <string_view>

#include "core/chat/ast.h"
#include "core/chat/lexer.h"

namespace quire::chat {

Block parse_template(std::string_view source);

}  // namespace quire::chat
