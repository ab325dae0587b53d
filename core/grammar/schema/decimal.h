// A number of a schema in decimal digits: bounds are compared as they are written, not as they are rounded.
// Shape   whole has no leading zeros but for "0" itself, part no trailing ones; nought has no sign.
// Owner   values. Thread  any.
// Fails   decimal_of(): nothing where more than 15 digits stand behind a double: which decimal was meant cannot be told.
#pragma once

#include <optional>
#include <string>

#include "core/base/json.h"

namespace quire::grammar {

struct Decimal {
  bool negative = false;
  std::string whole = "0";
  std::string part;

  bool is_integer() const { return part.empty(); }
};

std::optional<Decimal> decimal_of(const json::Value& number);
int compare(const Decimal& a, const Decimal& b);  // < 0, 0, > 0

}  // namespace quire::grammar
