#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/chat/arguments.h"
#include "core/chat/attributes.h"
#include "core/chat/filter_table.h"
#include "core/chat/filters.h"
#include "core/chat/operators.h"
#include "core/chat/printing.h"
#include "core/chat/python_text.h"
#include "core/chat/tests.h"

namespace quire::chat {
namespace {

Value length(const Value& value, const Arguments& arguments, Budget&) {
  const Bound given("length", arguments, {}, 0);
  const auto found = length_of(value);
  if (!found) fail(std::string("a ") + value.type_name() + " has no length");
  return Value::integer(*found);
}

Value list(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("list", arguments, {}, 0);
  return budget.list(iterate(value, budget));
}

Value first(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("first", arguments, {}, 0);
  if (const auto* iterator = value.as<std::shared_ptr<Iterator>>()) {
    Iterator& items = **iterator;
    if (!items.failure.empty()) fail(items.failure);
    return items.next < items.values.size() ? items.values[items.next++]
                                            : Value::undefined("the first item of an empty sequence");
  }
  const Values values = iterate(value, budget);
  budget.steps(values.size());
  return values.empty() ? Value::undefined("the first item of an empty sequence") : values.front();
}

Value last(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("last", arguments, {}, 0);
  if (value.as<std::shared_ptr<Iterator>>() != nullptr) fail("last cannot be used on a generator");
  const Values values = iterate(value, budget);
  budget.steps(values.size());
  return values.empty() ? Value::undefined("the last item of an empty sequence") : values.back();
}

Value reverse(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("reverse", arguments, {}, 0);
  Values values = iterate(value, budget);
  std::reverse(values.begin(), values.end());
  budget.steps(values.size());
  if (!value.is_text()) return Value::iterator(std::move(values));
  std::string text;
  for (const Value& letter : values) text += *letter.as_text();
  return budget.text(std::move(text), value.is_safe());
}

Value join(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("join", arguments, {"d", "attribute"}, 0);
  const std::string separator = given[0] != nullptr ? str(*given[0], budget) : "";
  std::string out;
  bool is_first = true;
  for (const Value& item : iterate(value, budget)) {
    if (!is_first) out += separator;
    out += str(given[1] != nullptr && !given[1]->is_none() ? nested_attribute(item, *given[1]) : item, budget);
    budget.bytes(out.size());
    is_first = false;
  }
  return Value::text(std::move(out));
}

Value items(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("items", arguments, {}, 0);
  if (value.is_undefined()) return Value::iterator({});
  if (value.as_dict() == nullptr) fail("can only get item pairs from a mapping");
  Values pairs;
  for (const auto& [key, item] : value.as_dict()->entries) {
    pairs.push_back(Value::sequence({key, item}, SequenceKind::kTuple));
  }
  budget.steps(pairs.size());
  return Value::iterator(std::move(pairs));
}

Value ignoring_case(const Value& value) { return value.is_text() ? Value::text(lower(*value.as_text())) : value; }

struct Keyed {
  Value key, value;
};

// Sorts stably, in reverse too, as Python's sorted().
Values sorted(std::vector<Keyed> pairs, bool backwards, Budget& budget) {
  budget.steps(pairs.size() * 16);
  if (backwards) std::reverse(pairs.begin(), pairs.end());
  std::stable_sort(pairs.begin(), pairs.end(), [](const Keyed& a, const Keyed& b) { return less(a.key, b.key); });
  if (backwards) std::reverse(pairs.begin(), pairs.end());
  Values values;
  for (Keyed& pair : pairs) values.push_back(std::move(pair.value));
  return values;
}

std::vector<Keyed> keyed(const Value& value, const Value* attribute, bool case_sensitive, Budget& budget) {
  if (attribute != nullptr && attribute->is_text() && attribute->as_text()->find(',') != std::string::npos) {
    fail("more than one attribute is not supported");
  }
  std::vector<Keyed> pairs;
  for (Value& item : iterate(value, budget)) {
    Value key = attribute != nullptr && !attribute->is_none() ? nested_attribute(item, *attribute) : item;
    pairs.push_back({case_sensitive ? std::move(key) : ignoring_case(key), std::move(item)});
  }
  return pairs;
}

Value sort(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("sort", arguments, {"reverse", "case_sensitive", "attribute"}, 0);
  return budget.list(sorted(keyed(value, given[2], given.flag(1, false), budget), given.flag(0, false), budget));
}

Value dictsort(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("dictsort", arguments, {"case_sensitive", "by", "reverse"}, 0);
  const Dict* dict = value.as_dict();
  if (dict == nullptr) fail(std::string("dictsort takes a dict, not a ") + value.type_name());
  const std::string by = given[1] != nullptr ? str(*given[1], budget) : "key";
  if (by != "key" && by != "value") fail("dictsort: by is key or value");
  std::vector<Keyed> pairs;
  for (const auto& [key, item] : dict->entries) {
    const Value& chosen = by == "key" ? key : item;
    pairs.push_back(
        {given.flag(0, false) ? chosen : ignoring_case(chosen), Value::sequence({key, item}, SequenceKind::kTuple)});
  }
  return budget.list(sorted(std::move(pairs), given.flag(2, false), budget));
}

Value unique(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("unique", arguments, {"case_sensitive", "attribute"}, 0);
  std::set<std::string> seen;
  Values values;
  for (Keyed& pair : keyed(value, given[1], given.flag(0, false), budget)) {
    if (seen.insert(pair.key.is_undefined() ? "u" : key_text(pair.key)).second) values.push_back(std::move(pair.value));
  }
  budget.steps(values.size());
  return Value::iterator(std::move(values));
}

template <bool kLargest>
Value extreme(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("min", arguments, {"case_sensitive", "attribute"}, 0);
  std::vector<Keyed> pairs = keyed(value, given[1], given.flag(0, false), budget);
  budget.steps(pairs.size());
  if (pairs.empty()) return Value::undefined("the min or max of an empty sequence");
  std::size_t best = 0;
  for (std::size_t i = 1; i < pairs.size(); ++i) {
    if (kLargest ? less(pairs[best].key, pairs[i].key) : less(pairs[i].key, pairs[best].key)) best = i;
  }
  return pairs[best].value;
}

Value sum(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("sum", arguments, {"attribute", "start"}, 0);
  Value total = given[1] != nullptr ? *given[1] : Value(std::int64_t{0});
  if (total.is_text()) fail("sum of texts: use join");
  bool compensated = false;
  for (const Value& item : iterate(value, budget)) {
    const Value part = given[0] != nullptr && !given[0]->is_none() ? nested_attribute(item, *given[0]) : item;
    compensated = compensated || part.as<double>() != nullptr;
    total = binary("+", total, part, budget);
  }
  // Python versions differ in the rounding.
  if (compensated) fail("sum of floats is not supported");
  return total;
}

Value map(const Value& value, const Arguments& arguments, Budget& budget) {
  if (!value.truth()) return Value::iterator({});
  Values values;
  if (arguments.positional.empty()) {
    const Bound given("map", arguments, {"attribute", "default"}, 1);
    const bool has_default = given[1] != nullptr && !given[1]->is_none();
    if (has_default && given[0]->is_text() && given[0]->as_text()->find('.') != std::string::npos) {
      fail("map with a default for a path is not supported");
    }
    for (const Value& item : iterate(value, budget)) {
      const Value found = nested_attribute(item, *given[0]);
      values.push_back(has_default && found.is_undefined() ? *given[1] : found);
    }
  } else {
    if (!arguments.positional[0].is_text()) fail("map takes the name of a filter");
    Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.named};
    for (const Value& item : iterate(value, budget)) {
      const Level level(budget);
      values.push_back(apply_filter(*arguments.positional[0].as_text(), item, rest, budget));
    }
  }
  budget.steps(values.size());
  return Value::iterator(std::move(values));
}

template <bool kKeeps, bool kByAttribute>
Value select(const Value& value, const Arguments& arguments, Budget& budget) {
  constexpr std::size_t kTestAt = kByAttribute ? 1 : 0;
  if (!value.truth()) return Value::iterator({});
  const Values& given = arguments.positional;
  if (given.size() < kTestAt) fail("selectattr needs the name of an attribute");
  const bool tested = given.size() > kTestAt;
  if (tested && !given[kTestAt].is_text()) fail("select takes the name of a test");
  Arguments rest{{}, arguments.named};
  if (tested) rest.positional.assign(given.begin() + kTestAt + 1, given.end());
  Values values;
  for (Value& item : iterate(value, budget)) {
    budget.steps(1);
    const Value asked = kByAttribute ? nested_attribute(item, given[0]) : item;
    const bool holds = tested ? apply_test(*given[kTestAt].as_text(), asked, rest) : asked.truth();
    if (holds == kKeeps) values.push_back(std::move(item));
  }
  return Value::iterator(std::move(values));
}

// Wraps a filter that is a generator in Python: its error is raised when the result is read.
template <FilterFunction kFilter>
Value late(const Value& value, const Arguments& arguments, Budget& budget) try {
  return kFilter(value, arguments, budget);
} catch (const TemplateError& error) {
  return Value(Value::State(std::make_shared<Iterator>(Iterator{{}, 0, error.message})));
}

}  // namespace

const FilterTable& sequence_filters() {
  static const FilterTable table = {
      {"length", length},
      {"count", length},
      {"list", list},
      {"first", first},
      {"last", last},
      {"reverse", reverse},
      {"join", join},
      {"items", late<items>},
      {"sort", sort},
      {"dictsort", dictsort},
      {"unique", late<unique>},
      {"min", extreme<false>},
      {"max", extreme<true>},
      {"sum", sum},
      {"map", late<map>},
      {"select", late<select<true, false>>},
      {"reject", late<select<false, false>>},
      {"selectattr", late<select<true, true>>},
      {"rejectattr", late<select<false, true>>},
  };
  return table;
}

Value nested_attribute(const Value& value, const Value& attribute) {
  if (!attribute.is_text()) return get_item(value, attribute);
  Value found = value;
  const std::string dot = ".";
  for (const std::string& part : split(*attribute.as_text(), &dot, -1, false)) {
    const bool number = !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
    found = get_item(found, number ? Value(std::int64_t{std::stoll(part)}) : Value::text(part));
  }
  return found;
}

}  // namespace quire::chat
