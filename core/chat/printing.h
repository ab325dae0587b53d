// A value as text: Python's str, repr and json.dumps.
// Shape   floats have the fewest digits that read back, in Python's notation.
// Thread  any; pure functions. Depth is bounded by kMaxValueDepth.
// Fails   TemplateError: a text that becomes larger than the budget allows, as soon as it does; what has no text that
//         is the same every time (a generator, a function), or no JSON.
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
  std::optional<std::string> indent;  // absent: all on one line
  std::string item_separator = ", ", key_separator = ": ";
  bool ensure_ascii = false, sort_keys = false;
};
std::string to_json(const Value& value, const JsonLayout& layout, Budget& budget);

}  // namespace quire::chat
