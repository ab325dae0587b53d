// A number of a schema in decimal digits: bounds are compared as they are written, not as they are rounded.
// Shape   whole has no leading zeros except "0" itself, part has no trailing ones; zero has no sign.
// Owner   values. Thread  any.
// Fails   decimal_of(): none for a double that is not finite, or that 15 digits do not give back: which decimal was
//         meant is unknown.
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
int compare(const Decimal& a, const Decimal& b);  // < 0, 0 or > 0

}  // namespace quire::grammar
