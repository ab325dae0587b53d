// Rules of exactly the numbers between two bounds, digit by digit, in plain decimal notation.
// Shape   no sign before zero, no exponent, no more than kMaxDigits digits before the point. After it there are at most
//         as many digits as keep two such numbers distinct as doubles (15 with those of the bound), so that a reader
//         who rounds agrees.
// Thread  any.
// Fails   number_range(): none if the range is not one of integers and a bound needs more digits than that.
// Source  ours: the decimal digits of a bound are followed as long as the number agrees with them.
#pragma once

#include <optional>

#include "core/grammar/rules/rules.h"
#include "core/grammar/schema/decimal.h"

namespace quire::grammar {

struct Bound {
  Decimal value;
  bool open = false;  // the bound itself is excluded
};

struct NumberRange {
  std::optional<Bound> low;
  std::optional<Bound> high;
  bool integer = false;  // no point, no digits after it
};

bool is_empty(const NumberRange& range);  // as real numbers
bool holds(const NumberRange& range, const Decimal& value);

std::optional<Expr> number_range(Rules& rules, const NumberRange& range);

}  // namespace quire::grammar
