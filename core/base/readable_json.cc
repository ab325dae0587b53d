#include "core/base/readable_json.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>

namespace quire {
namespace {

constexpr std::string_view kLargest = "1.7976931348623157e308";
constexpr std::string_view kInfinity = "Infinity", kNan = "NaN";  // a minus before stays: -Infinity becomes -1.79…e308

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t skip_digits(std::string_view json, std::size_t at) {
  while (at < json.size() && is_digit(json[at])) ++at;
  return at;
}

// The end of the number that begins at `at`; `at` itself if there is none.
std::size_t end_of_number(std::string_view json, std::size_t at) {
  const std::size_t digits = json[at] == '-' ? at + 1 : at;
  std::size_t end = skip_digits(json, digits);
  if (end == digits || (json[digits] == '0' && end > digits + 1)) return at;
  if (end < json.size() && json[end] == '.') {
    const std::size_t fraction = end + 1;
    end = skip_digits(json, fraction);
    if (end == fraction) return at;
  }
  if (end < json.size() && (json[end] == 'e' || json[end] == 'E')) {
    std::size_t exponent = end + 1;
    if (exponent < json.size() && (json[exponent] == '+' || json[exponent] == '-')) ++exponent;
    end = skip_digits(json, exponent);
    if (end == exponent) return at;
  }
  return end;
}

template <typename Number>
bool fits(std::string_view text) {
  Number value{};
  return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc();
}

bool is_zero(std::string_view number) {
  return number.substr(0, number.find_first_of("eE")).find_first_not_of("-0.") == number.npos;
}

// True if a number that no double holds is too large for one, false if it is too small; not for zero.
bool is_large(std::string_view number) {
  const std::size_t exponent_at = std::min(number.find_first_of("eE"), number.size());
  const std::string_view mantissa = number.substr(0, exponent_at);
  std::string_view digits = number.substr(std::min(exponent_at + 1, number.size()));
  const bool is_negative = digits.starts_with('-');
  if (is_negative || digits.starts_with('+')) digits.remove_prefix(1);
  constexpr std::int64_t kFar = std::int64_t{1} << 40;  // further than any text has digits
  std::int64_t exponent = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), exponent).ec == std::errc::result_out_of_range) {
    exponent = kFar;
  }
  exponent = std::min(exponent, kFar) * (is_negative ? -1 : 1);
  const auto point = static_cast<std::int64_t>(std::min(mantissa.find('.'), mantissa.size()));
  const auto first = static_cast<std::int64_t>(mantissa.find_first_of("123456789"));
  return point - first + exponent > 0;
}

void add_number(std::string_view number, std::string& out) {
  const bool is_whole = number.find_first_of(".eE") == number.npos;
  if (number.find_first_of("eE") != number.npos && is_zero(number)) {
    out += '0';  // for any exponent, even one that from_chars() rejects
  } else if (is_whole ? fits<std::int64_t>(number) || fits<std::uint64_t>(number) : fits<double>(number)) {
    out += number;
  } else if (is_whole && fits<double>(number)) {
    out.append(number).append(".0");
  } else if (!is_large(number)) {
    out += '0';
  } else {
    if (number.front() == '-') out += '-';
    out += kLargest;
  }
}

// The end of the string that begins at `at`, behind its closing quote.
std::size_t end_of_string(std::string_view json, std::size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return at < json.size() ? at + 1 : json.size();
}

}  // namespace

std::string readable_json(std::string_view json) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (json.starts_with(kByteOrderMark)) json.remove_prefix(kByteOrderMark.size());
  std::string out;
  out.reserve(json.size());
  for (std::size_t at = 0; at < json.size();) {
    if (json[at] == '-' || is_digit(json[at])) {
      const std::size_t end = end_of_number(json, at);
      if (end != at) {
        add_number(json.substr(at, end - at), out);
        at = end;
        continue;
      }
    }
    if (json.substr(at).starts_with(kInfinity)) {
      out += kLargest;
      at += kInfinity.size();
      continue;
    }
    if (json.substr(at).starts_with(kNan)) {
      out += "null";
      at += kNan.size();
      continue;
    }
    const std::size_t end = json[at] == '"' ? end_of_string(json, at) : at + 1;
    out += json.substr(at, end - at);
    at = end;
  }
  return out;
}

}  // namespace quire
