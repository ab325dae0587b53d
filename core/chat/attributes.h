// Attribute access, item access and method calls (value.name, value[key], value.name(...)) as the sandbox allows them.
// Shape   value.name prefers a dict's methods to its keys, value[key] its keys. A missing attribute is undefined, and
//         so is a method that would change a list or a dict.
// Thread  any.
// Fails   TemplateError: access to an undefined value; attributes and methods of Python that are not implemented.
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
