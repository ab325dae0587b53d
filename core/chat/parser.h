// A template's tokens as statements, everything that is not understood refused with its line.
// Thread  any.
// Fails   TemplateError: wrong syntax, a statement that is not supported, an unknown filter or test outside of any if
//         (inside, it fails when it is reached, as in jinja2), nesting past kMaxTreeDepth.
// Source  jinja2 3.1.6's grammar with the loop controls and transformers' {% generation %}.
#pragma once

#include <string_view>

#include "core/chat/ast.h"
#include "core/chat/lexer.h"

namespace quire::chat {

Block parse_template(std::string_view source);

}  // namespace quire::chat
