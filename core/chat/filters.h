// The filters: value | name(arguments).
// Thread  any.
// Fails   TemplateError where jinja2 raises, where the budget ends, and for an unknown name.
// Source  jinja2 3.1.6's filters; tojson as transformers defines it.
#pragma once

#include <string_view>

#include "core/chat/budget.h"
#include "core/chat/value.h"

namespace quire::chat {

bool is_filter(std::string_view name);
Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Budget& budget);

// What a text, a list or a dict has below a filter's attribute argument: "a.0.b".
Value nested_attribute(const Value& value, const Value& attribute);

}  // namespace quire::chat
