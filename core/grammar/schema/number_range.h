// Numbers between two bounds as rules, digit by digit: exactly those, in plain decimal notation.
// Shape   no sign before nought, no exponent, no more than kMaxDigits digits before the point. Behind it stand no more digits
//         than keep two of them apart as doubles (15 with those of the bound), so that a reader who rounds agrees.
// Thread  any.
// Fails   number_range(): nothing where a bound of a number that may have a part needs more digits than that.
// Source  ours: the decimal digits of a bound are followed as long as the number agrees with them.
#pragma once

#include <optional>

#include "core/grammar/rules.h"
#include "core/grammar/schema/decimal.h"

namespace quire::grammar {

struct Bound {
  Decimal value;
  bool open = false;  // the bound itself is outside
};

struct NumberRange {
  std::optional<Bound> low;
  std::optional<Bound> high;
  bool integer = false;  // no point, no digits behind it
};

bool is_empty(const NumberRange& range);  // as real numbers
bool holds(const NumberRange& range, const Decimal& value);

std::optional<Expr> number_range(Rules& rules, const NumberRange& range);

}  // namespace quire::grammar
