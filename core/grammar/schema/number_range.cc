#include "core/grammar/schema/number_range.h"

#include <algorithm>
#include <vector>

#include "core/grammar/schema/json_text.h"

namespace quire::grammar {
namespace {

constexpr std::uint32_t kExactDigits = 15;  // different decimals of so many digits are different doubles

// Rules of absolute values from low to high.
class Sizes {
 public:
  Sizes(Rules& rules, const Bound& low, const std::optional<Bound>& high, std::uint32_t max_part)
      : rules_(rules), low_(low), high_(high), max_part_(max_part) {
    if (high_ && high_->value.whole.size() > kMaxDigits) high_.reset();  // beyond what is written anyway
  }

  Expr all() {
    std::vector<Expr> ways;
    const auto shortest = static_cast<std::uint32_t>(low_.value.whole.size());
    const auto longest = high_ ? static_cast<std::uint32_t>(high_->value.whole.size()) : kMaxDigits;
    for (std::uint32_t digits = shortest; digits <= std::min(longest, kMaxDigits); ++digits) {
      num_digits_ = digits;
      ways.push_back(whole(0, digits == shortest, high_.has_value() && digits == longest));
    }
    return rules_.choice(ways);
  }

 private:
  Expr sequence(std::initializer_list<Expr> parts) { return rules_.sequence({parts.begin(), parts.size()}); }

  Expr digit(char first, char last) {
    ByteSet set;
    for (char c = first; c <= last; ++c) set.set(static_cast<unsigned char>(c));
    return rules_.byte_set(set);
  }

  Expr digits(std::uint32_t least, std::uint32_t most) { return rules_.repeat(digit('0', '9'), least, most); }

  // Matches one more digit and the rest. at_low, at_high: all digits so far are those of the low, the high bound.
  // rest(at_low, at_high) makes the expression of what follows the digit.
  template <typename Rest>
  Expr next_digit(char smallest, char low, char high, bool at_low, bool at_high, Rest rest) {
    const char first = at_low ? std::max(low, smallest) : smallest;
    const char last = at_high ? high : '9';
    if (first > last) return rules_.choice({});
    if (at_low && at_high && first == last && first == low) {
      return sequence({digit(first, first), rest(true, true)});
    }
    std::vector<Expr> ways;
    char from = first;
    char to = last;
    if (at_low && from == low) {
      ways.push_back(sequence({digit(low, low), rest(true, false)}));
      ++from;
    }
    if (at_high && from <= to) {
      ways.push_back(sequence({digit(high, high), rest(false, true)}));
      --to;
    }
    if (from <= to) ways.push_back(sequence({digit(from, to), rest(false, false)}));
    return rules_.choice(ways);
  }

  Expr whole(std::uint32_t at, bool at_low, bool at_high) {
    if (at == num_digits_) return point(at_low, at_high);
    if (at > 0 && !at_low && !at_high)
      return sequence({digits(num_digits_ - at, num_digits_ - at), point(false, false)});
    const char smallest = at == 0 && num_digits_ > 1 ? '1' : '0';
    return next_digit(smallest, at_low ? low_.value.whole[at] : '0', at_high ? high_->value.whole[at] : '9', at_low,
                      at_high, [&](bool low, bool high) { return whole(at + 1, low, high); });
  }

  bool may_end(std::uint32_t at, bool at_low, bool at_high) const {  // after `at` digits of the part
    if (at_low && (at < low_.value.part.size() || low_.open)) return false;
    return !at_high || at < high_->value.part.size() || !high_->open;
  }

  Expr point(bool at_low, bool at_high) {
    std::vector<Expr> ways;
    if (may_end(0, at_low, at_high)) ways.push_back(rules_.bytes(""));
    if (max_part_ > 0) ways.push_back(sequence({rules_.bytes("."), one_more(0, at_low, at_high)}));
    return rules_.choice(ways);
  }

  Expr part(std::uint32_t at, bool at_low, bool at_high) {
    if (!at_low && !at_high) return digits(0, max_part_ - at);
    std::vector<Expr> ways;
    if (may_end(at, at_low, at_high)) ways.push_back(rules_.bytes(""));
    if (at < max_part_) ways.push_back(one_more(at, at_low, at_high));
    return rules_.choice(ways);
  }

  Expr one_more(std::uint32_t at, bool at_low, bool at_high) {
    const auto of = [at](const Bound& bound) { return at < bound.value.part.size() ? bound.value.part[at] : '0'; };
    return next_digit('0', at_low ? of(low_) : '0', at_high ? of(*high_) : '9', at_low, at_high,
                      [&](bool low, bool high) { return part(at + 1, low, high); });
  }

  Rules& rules_;
  Bound low_;
  std::optional<Bound> high_;
  std::uint32_t max_part_;
  std::uint32_t num_digits_ = 1;
};

Bound without_sign(Bound bound) {
  bound.value.negative = false;
  return bound;
}

bool below_zero(const Bound& bound) { return bound.value.negative; }

// The number of digits that may follow the point; none if a bound has more.
std::optional<std::uint32_t> max_part(const NumberRange& range) {
  if (range.integer) return 0;
  std::uint32_t most = kExactDigits - 1;
  std::uint32_t needed = 0;
  for (const auto& bound : {range.low, range.high}) {
    if (!bound) continue;
    const auto digits = static_cast<std::uint32_t>(bound->value.whole.size());
    if (digits <= kMaxDigits) most = std::min(most, kExactDigits - std::min(digits, kExactDigits));
    needed = std::max(needed, static_cast<std::uint32_t>(bound->value.part.size()));
  }
  if (needed > most) return std::nullopt;
  return most;
}

}  // namespace

bool is_empty(const NumberRange& range) {
  if (!range.low || !range.high) return false;
  const int order = compare(range.low->value, range.high->value);
  return order > 0 || (order == 0 && (range.low->open || range.high->open));
}

bool holds(const NumberRange& range, const Decimal& value) {
  if (range.integer && !value.is_integer()) return false;
  if (range.low) {
    const int order = compare(value, range.low->value);
    if (order < 0 || (order == 0 && range.low->open)) return false;
  }
  if (range.high) {
    const int order = compare(value, range.high->value);
    if (order > 0 || (order == 0 && range.high->open)) return false;
  }
  return true;
}

std::optional<Expr> number_range(Rules& rules, const NumberRange& range) {
  const auto digits = max_part(range);
  if (!digits) return std::nullopt;
  if (is_empty(range)) return rules.choice({});
  std::vector<Expr> ways;
  const Bound zero;
  const Bound beyond_zero{{}, true};
  if (!range.high || !below_zero(*range.high)) {  // 0 and above
    const Bound low = range.low && !below_zero(*range.low) ? *range.low : zero;
    ways.push_back(Sizes(rules, low, range.high, *digits).all());
  }
  if (!range.low || below_zero(*range.low)) {
    const Bound nearest = range.high && below_zero(*range.high) ? without_sign(*range.high) : beyond_zero;
    std::optional<Bound> farthest;
    if (range.low) farthest = without_sign(*range.low);
    const Expr parts[] = {rules.bytes("-"), Sizes(rules, nearest, farthest, *digits).all()};
    ways.push_back(rules.sequence(parts));
  }
  return rules.choice(ways);
}

}  // namespace quire::grammar
