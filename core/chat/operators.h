// Operators on values: + - * / // % **, comparisons, in and not in.
// Thread  any.
// Fails   TemplateError if Python raises, and if an integer exceeds 64 bits.
// Source  Python's data model.
#pragma once

#include <string>
#include <string_view>

#include "core/chat/budget.h"
#include "core/chat/value.h"

namespace quire::chat {

Value binary(std::string_view symbol, const Value& a, const Value& b, Budget& budget);
Value negated(const Value& value);
bool compare(std::string_view symbol, const Value& a, const Value& b);  // == != < <= > >= in, not in
Value format_percent(const std::string& format, const Value& values, Budget& budget);

}  // namespace quire::chat
