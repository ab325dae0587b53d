// value.name, value[key] and value.name(...): what the sandbox lets a template reach.
// Shape   a dict's methods hide its keys behind a dot; behind [] the keys come first. What is not there is undefined,
//         and so is whatever would change a list or a dict.
// Thread  any.
// Fails   TemplateError: anything of an undefined value; attributes and methods of Python that are not offered.
// Source  jinja2 3.1.6's ImmutableSandboxedEnvironment.getattr() and getitem().
#pragma once

#include <string>

#include "core/chat/budget.h"
#include "core/chat/value.h"

namespace quire::chat {

Value get_attribute(const Value& object, const std::string& name);
Value get_item(const Value& object, const Value& key);
Value call_method(const Method& method, const Arguments& arguments, Budget& budget);

}  // namespace quire::chat
