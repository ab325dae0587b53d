// jinja2's tests: value is name(arguments).
// Thread  any.
// Fails   TemplateError if jinja2 raises, and for an unknown name.
// Source  jinja2 3.1.6's tests.
#pragma once

#include <string_view>

#include "core/chat/value.h"

namespace quire::chat {

bool is_test(std::string_view name);
bool apply_test(std::string_view name, const Value& value, const Arguments& arguments);

}  // namespace quire::chat
