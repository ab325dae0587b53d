#include "core/chat/tests.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/chat/budget.h"
#include "core/chat/operators.h"
#include "core/chat/printing.h"
#include "core/chat/python_text.h"

namespace quire::chat {
namespace {

using TestFunction = bool (*)(const Value& value, const Value* argument);

Value remainder(const Value& value, const Value& divisor) {
  Budget budget{Limits{}};
  if (!value.as_number()) fail(std::string("a ") + value.type_name() + " is not a number");
  return binary("%", value, divisor, budget);
}

bool is_sequence(const Value& value) {
  if (const auto* sequence = value.as<Sequence>()) return sequence->kind <= SequenceKind::kRange;
  return value.is_undefined() || value.is_text() || value.as_dict() != nullptr;
}

bool is_callable(const Value& value) {
  return value.is_undefined() || value.as<const Macro*>() != nullptr || value.as<Method>() != nullptr ||
         value.as<Function>() != nullptr || value.as<std::shared_ptr<Loop>>() != nullptr;
}

bool is_same(const Value& a, const Value& b) {
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.as<bool>() != nullptr || b.as<bool>() != nullptr) return a.state().index() == b.state().index() && equal(a, b);
  fail("sameas is supported only for none, true and false");
}

// str.islower and str.isupper: at least one cased character, and none of the other case.
bool has_case(const Value& value, bool wants_lower) {
  Budget budget{Limits()};
  const std::string text = str(value, budget);
  const std::string down = lower(text), up = upper(text);
  return down != up && text == (wants_lower ? down : up);
}

struct Test {
  TestFunction function;
  bool takes_argument = false;
};

const std::map<std::string_view, Test>& tests() {
  using V = const Value&;
  using A = const Value*;
  static const std::map<std::string_view, Test> table = {
      {"defined", {[](V v, A) { return !v.is_undefined(); }}},
      {"undefined", {[](V v, A) { return v.is_undefined(); }}},
      {"none", {[](V v, A) { return v.is_none(); }}},
      {"boolean", {[](V v, A) { return v.as<bool>() != nullptr; }}},
      {"true", {[](V v, A) { return v.as<bool>() != nullptr && v.truth(); }}},
      {"false", {[](V v, A) { return v.as<bool>() != nullptr && !v.truth(); }}},
      {"integer", {[](V v, A) { return v.as<std::int64_t>() != nullptr; }}},
      {"float", {[](V v, A) { return v.as<double>() != nullptr; }}},
      {"number", {[](V v, A) { return v.as_number().has_value(); }}},
      {"string", {[](V v, A) { return v.is_text(); }}},
      {"mapping", {[](V v, A) { return v.as_dict() != nullptr; }}},
      {"iterable", {[](V v, A) { return is_iterable(v); }}},
      {"sequence", {[](V v, A) { return is_sequence(v); }}},
      {"callable", {[](V v, A) { return is_callable(v); }}},
      {"escaped", {[](V v, A) { return v.is_safe(); }}},
      {"lower", {[](V v, A) { return has_case(v, true); }}},
      {"upper", {[](V v, A) { return has_case(v, false); }}},
      {"odd", {[](V v, A) { return equal(remainder(v, Value::integer(2)), Value::integer(1)); }}},
      {"even", {[](V v, A) { return equal(remainder(v, Value::integer(2)), Value::integer(0)); }}},
      {"divisibleby", {[](V v, A a) { return equal(remainder(v, *a), Value::integer(0)); }, true}},
      {"sameas", {[](V v, A a) { return is_same(v, *a); }, true}},
      {"in", {[](V v, A a) { return compare("in", v, *a); }, true}},
      {"==", {[](V v, A a) { return equal(v, *a); }, true}},
      {"!=", {[](V v, A a) { return !equal(v, *a); }, true}},
      {"<", {[](V v, A a) { return compare("<", v, *a); }, true}},
      {"<=", {[](V v, A a) { return compare("<=", v, *a); }, true}},
      {">", {[](V v, A a) { return compare(">", v, *a); }, true}},
      {">=", {[](V v, A a) { return compare(">=", v, *a); }, true}},
  };
  return table;
}

std::string_view plain_name(std::string_view name) {
  static const std::map<std::string_view, std::string_view> others = {{"eq", "=="}, {"equalto", "=="},    {"ne", "!="},
                                                                      {"lt", "<"},  {"lessthan", "<"},    {"le", "<="},
                                                                      {"gt", ">"},  {"greaterthan", ">"}, {"ge", ">="}};
  const auto found = others.find(name);
  return found == others.end() ? name : found->second;
}

}  // namespace

bool is_test(std::string_view name) { return tests().count(plain_name(name)) != 0; }

bool apply_test(std::string_view name, const Value& value, const Arguments& arguments) {
  const auto found = tests().find(plain_name(name));
  if (found == tests().end()) fail("test '" + std::string(name) + "' is not supported");
  const std::size_t num_arguments = arguments.positional.size() + arguments.named.size();
  if (num_arguments != (found->second.takes_argument ? 1u : 0u)) {
    fail("test '" + std::string(name) + "' got " + std::to_string(num_arguments) + " arguments");
  }
  if (!arguments.named.empty()) fail("test '" + std::string(name) + "' takes its argument without a name");
  return found->second.function(value, num_arguments == 1 ? &arguments.positional[0] : nullptr);
}

}  // namespace quire::chat
