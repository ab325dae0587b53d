// A value as text: Python's str, repr and json.dumps.
// Shape   floats have the fewest digits that read back as the same number, in Python's notation.
// Thread  any; pure functions. Depth is bounded by kMaxValueDepth.
// Fails   TemplateError: a text that exceeds the budget, as soon as it does; a value without a reproducible text (a
//         generator, a function) or without JSON.
// Source  CPython 3.11's float_repr_style, unicode_repr and json.encoder; transformers' tojson.
#pragma once

#include <optional>
#include <string>

#include "core/chat/budget.h"
#include "core/chat/value.h"

namespace quire::chat {

std::string str(const Value& value, Budget& budget);
std::string repr(const Value& value, Budget& budget);

struct JsonLayout {
  std::optional<std::string> indent;  // absent: everything on one line
  std::string item_separator = ", ", key_separator = ": ";
  bool ensure_ascii = false, sort_keys = false;
};
std::string to_json(const Value& value, const JsonLayout& layout, Budget& budget);

}  // namespace quire::chat
