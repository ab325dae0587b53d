// jinja2's filters: value | name(arguments).
// Thread  any.
// Fails   TemplateError if jinja2 raises, if the budget is exceeded, and for an unknown name.
// Source  jinja2 3.1.6's filters; tojson as transformers defines it.
#pragma once

#include <string_view>

#include "core/chat/budget.h"
#include "core/chat/value.h"

namespace quire::chat {

bool is_filter(std::string_view name);
Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Budget& budget);

// The value that a filter's attribute argument, a path like "a.0.b", selects from `value`.
Value nested_attribute(const Value& value, const Value& attribute);

}  // namespace quire::chat
