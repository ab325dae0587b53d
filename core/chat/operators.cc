#include "core/chat/operators.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "core/chat/printing.h"
#include "core/chat/python_text.h"

namespace quire::chat {
namespace {

[[noreturn]] void no_operator(std::string_view symbol, const Value& a, const Value& b) {
  for (const Value* value : {&a, &b}) {
    if (const auto* undefined = value->as<Undefined>()) fail(undefined->what + " is undefined");
  }
  fail("no " + std::string(symbol) + " between " + a.type_name() + " and " + b.type_name());
}

[[noreturn]] void overflow() { fail("an integer does not fit 64 bits"); }

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) overflow();
  }
  return result;
}

std::int64_t floor_divided(std::int64_t a, std::int64_t b) {
  if (b == -1 && a == INT64_MIN) overflow();
  return a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
}

Value integer_operation(std::string_view symbol, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool bad = false;
  if (symbol == "+") {
    bad = __builtin_add_overflow(a, b, &result);
  } else if (symbol == "-") {
    bad = __builtin_sub_overflow(a, b, &result);
  } else if (symbol == "*") {
    bad = __builtin_mul_overflow(a, b, &result);
  } else if (symbol == "**") {
    result = integer_power(a, b);
  } else {
    if (b == 0) fail("division by zero");
    if (symbol == "//") result = floor_divided(a, b);
    if (symbol == "%") result = b == -1 ? 0 : a % b + ((a % b != 0 && (a % b < 0) != (b < 0)) ? b : 0);
  }
  if (bad) overflow();
  return Value(result);
}

// CPython's float_divmod: a consistent quotient and remainder.
std::pair<double, double> float_divmod(double a, double b) {
  double rest = std::fmod(a, b), quotient = (a - rest) / b;
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) rest += b, quotient -= 1;
  } else {
    rest = std::copysign(0.0, b);
  }
  if (quotient == 0) return {std::copysign(0.0, a / b), rest};
  const double whole = std::floor(quotient);
  return {quotient - whole > 0.5 ? whole + 1 : whole, rest};
}

Value float_operation(std::string_view symbol, double a, double b) {
  if (symbol == "+") return Value(a + b);
  if (symbol == "-") return Value(a - b);
  if (symbol == "*") return Value(a * b);
  if (symbol == "**") {
    if (a == 0 && b < 0) fail("zero to a negative power");
    if (a < 0 && std::isfinite(b) && b != std::floor(b)) fail("a negative number to a fraction is not supported");
    const double power = std::pow(a, b);
    if (std::isinf(power) && std::isfinite(a) && std::isfinite(b)) fail("a float is too large");
    return Value(power);
  }
  if (b == 0) fail("division by zero");
  if (symbol == "/") return Value(a / b);
  return Value(symbol == "//" ? float_divmod(a, b).first : float_divmod(a, b).second);
}

Value number_operation(std::string_view symbol, const Value& a, const Value& b) {
  const auto left = a.as_integer(), right = b.as_integer();
  const bool whole = left && right && symbol != "/" && (symbol != "**" || *right >= 0);
  if (whole) return integer_operation(symbol, *left, *right);
  return float_operation(symbol, *a.as_number(), *b.as_number());
}

Value joined_text(const Value& a, const Value& b, Budget& budget) {
  const bool safe = a.is_safe() || b.is_safe();
  const auto part = [&](const Value& value) {
    return safe && !value.is_safe() ? escaped_html(*value.as_text()) : *value.as_text();
  };
  budget.bytes(a.as_text()->size() + b.as_text()->size());
  return budget.text(part(a) + part(b), safe);
}

Value joined_lists(const Sequence& a, const Sequence& b, Budget& budget) {
  budget.steps(a.items->values.size());
  Values values = a.items->values;
  values.insert(values.end(), b.items->values.begin(), b.items->values.end());
  return budget.list(std::move(values), a.kind);
}

Value repeated(const Value& value, std::int64_t times, Budget& budget) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  const auto* sequence = value.as<Sequence>();
  const std::size_t size = value.is_text() ? value.as_text()->size() : sequence->items->values.size();
  std::size_t total = 0;
  if (__builtin_mul_overflow(size, count, &total)) total = SIZE_MAX;
  if (value.is_text()) {
    budget.bytes(total);
    std::string text;
    for (std::size_t i = 0; total > 0 && i < count; ++i) text += *value.as_text();
    return Value::text(std::move(text), value.is_safe());
  }
  budget.steps(total);
  Values values;
  for (std::size_t i = 0; total > 0 && i < count; ++i) {
    values.insert(values.end(), sequence->items->values.begin(), sequence->items->values.end());
  }
  return Value::sequence(std::move(values), sequence->kind);
}

bool is_list(const Value& value) {
  const auto* sequence = value.as<Sequence>();
  return sequence != nullptr && (sequence->kind == SequenceKind::kList || sequence->kind == SequenceKind::kTuple);
}

bool contains(const Value& given, const Value& item) {
  const Value& container = spoken(given);
  if (const std::string* text = container.as_text()) {
    if (!item.is_text()) fail(std::string("a text contains no ") + item.type_name());
    return text->find(*item.as_text()) != std::string::npos;
  }
  if (const Dict* dict = container.as_dict()) return !item.is_undefined() && dict->find(item) != nullptr;
  if (const auto* sequence = container.as<Sequence>()) {
    const Values& values = sequence->items->values;
    return std::any_of(values.begin(), values.end(), [&](const Value& value) { return equal(value, item); });
  }
  if (const auto* iterator = container.as<std::shared_ptr<Iterator>>()) {
    Iterator& items = **iterator;
    if (!items.failure.empty()) fail(items.failure);
    while (items.next < items.values.size()) {
      if (equal(items.values[items.next++], item)) return true;
    }
    return false;
  }
  if (container.is_undefined()) return false;
  fail(std::string("a ") + container.type_name() + " is not a container");
}

}  // namespace

Value binary(std::string_view symbol, const Value& a, const Value& b, Budget& budget) {
  if (a.as_number() && b.as_number()) return number_operation(symbol, a, b);
  if (symbol == "+") {
    if (a.is_text() && b.is_text()) return joined_text(a, b, budget);
    const auto *left = a.as<Sequence>(), *right = b.as<Sequence>();
    if (is_list(a) && is_list(b) && left->kind == right->kind) return joined_lists(*left, *right, budget);
  }
  if (symbol == "*") {
    if ((a.is_text() || is_list(a)) && b.as_integer()) return repeated(a, *b.as_integer(), budget);
    if ((b.is_text() || is_list(b)) && a.as_integer()) return repeated(b, *a.as_integer(), budget);
  }
  if (symbol == "%" && a.is_text()) {
    if (a.is_safe()) fail("% of a safe text is not supported");
    return format_percent(*a.as_text(), b, budget);
  }
  no_operator(symbol, a, b);
}

Value negated(const Value& value) {
  if (const auto whole = value.as_integer()) return integer_operation("-", 0, *whole);
  if (const auto number = value.as_number()) return Value(-*number);
  no_operator("-", value, value);
}

bool compare(std::string_view symbol, const Value& a, const Value& b) {
  if (symbol == "==") return equal(a, b);
  if (symbol == "!=") return !equal(a, b);
  if (symbol == "<") return less(a, b);
  if (symbol == ">") return less(b, a);
  if (symbol == "<=" || symbol == ">=") {
    const bool below = symbol == "<=" ? less(a, b) : less(b, a);
    return below || equal(a, b);
  }
  return contains(b, a) == (symbol == "in");
}

Value format_percent(const std::string& format, const Value& values, Budget& budget) {
  const auto* tuple = values.as<Sequence>();
  const bool many = tuple != nullptr && tuple->kind == SequenceKind::kTuple;
  if (!many && !values.as_number() && !values.is_text() && !values.is_none()) {
    fail(std::string("% with a ") + values.type_name() + " is not supported");
  }
  const std::size_t num_values = many ? tuple->items->values.size() : 1;
  std::size_t next = 0;
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    const char kind = ++i < format.size() ? format[i] : ' ';
    if (kind == '%') {
      out += '%';
      continue;
    }
    if (std::string_view("sdir").find(kind) == std::string_view::npos)
      fail("%" + std::string(1, kind) + " is not supported");
    if (next == num_values) fail("not enough arguments for format string");
    const Value& value = many ? tuple->items->values[next] : values;
    ++next;
    if ((kind == 'd' || kind == 'i') && !value.as_integer()) fail("%d takes an integer here");
    out += kind == 's' ? str(value, budget) : kind == 'r' ? repr(value, budget) : std::to_string(*value.as_integer());
    budget.bytes(out.size());
  }
  if (next != num_values) fail("not all arguments converted during string formatting");
  return Value::text(std::move(out));
}

}  // namespace quire::chat
