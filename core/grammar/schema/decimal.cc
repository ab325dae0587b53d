#include "core/grammar/schema/decimal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace quire::grammar {
namespace {

Decimal normal(bool negative, std::string whole, std::string part) {
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  part.erase(part.find_last_not_of('0') + 1);
  if (whole.empty()) whole = "0";
  return {negative && !(whole == "0" && part.empty()), std::move(whole), std::move(part)};
}

Decimal of_integer(const std::string& text) {
  const bool negative = text.starts_with('-');
  return normal(negative, text.substr(negative ? 1 : 0), "");
}

int compare_size(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  if (const int whole = a.whole.compare(b.whole); whole != 0) return whole;
  return a.part.compare(b.part);  // no trailing zeros: a prefix is the smaller one
}

}  // namespace

std::optional<Decimal> decimal_of(const json::Value& number) {
  if (number.is_int64()) return of_integer(std::to_string(number.get_int64()));
  if (number.is_uint64()) return of_integer(std::to_string(number.get_uint64()));
  const double value = number.get_double();
  if (!std::isfinite(value)) return std::nullopt;
  char text[48];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, 14).ptr;  // 15 digits
  double back = 0;
  std::from_chars(text, end, back);
  if (back != value) return std::nullopt;
  const std::string_view all(text, end);
  const std::size_t e = all.find('e');
  int exponent = 0;
  std::from_chars(all.data() + e + (all[e + 1] == '+' ? 2 : 1), end, exponent);
  const bool negative = all.front() == '-';
  std::string digits;
  for (const char c : all.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  const int point = 1 + exponent;  // digits before it
  if (point <= 0) return normal(negative, "0", std::string(static_cast<std::size_t>(-point), '0') + digits);
  const auto before = static_cast<std::size_t>(point);
  if (digits.size() < before) digits.append(before - digits.size(), '0');
  return normal(negative, digits.substr(0, before), digits.substr(before));
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return a.negative ? -compare_size(a, b) : compare_size(a, b);
}

}  // namespace quire::grammar
