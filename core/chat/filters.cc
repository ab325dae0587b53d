#include "core/chat/filters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "core/chat/arguments.h"
#include "core/chat/filter_table.h"
#include "core/chat/operators.h"
#include "core/chat/python_text.h"

namespace quire::chat {
namespace {

// jinja2's soft_str: a safe text stays safe.
Value soft(const Value& value, std::string text, Budget& budget) {
  return budget.text(std::move(text), value.is_safe());
}

template <std::string (*kChange)(std::string_view)>
Value change(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("this filter", arguments, {}, 0);
  return soft(value, kChange(str(value, budget)), budget);
}

Value title(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("title", arguments, {}, 0);
  std::string out;
  const std::string text = str(value, budget);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.size(), text.find_first_of(" \t\n\v\f\r-({[<", at));
    if (end > at) {
      std::size_t first = at + 1;
      while (first < end && (static_cast<unsigned char>(text[first]) & 0xC0u) == 0x80u) ++first;
      out += upper(text.substr(at, first - at));
      out += lower(text.substr(first, end - first));
    }
    at = end;
    if (at < text.size()) out += text[at++];
  }
  return budget.text(std::move(out));
}

Value trim(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("trim", arguments, {"chars"}, 0);
  return soft(value, std::string(strip(str(value, budget), given.text(0), true, true)), budget);
}

Value replace(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("replace", arguments, {"old", "new", "count"}, 2);
  const std::string text = str(value, budget), old = str(*given[0], budget), with = str(*given[1], budget);
  const bool counted = given[2] != nullptr && !given[2]->is_none();
  const std::size_t places = text.size() / std::max<std::size_t>(old.size(), 1) + 1;
  if (with.size() > old.size() && places * with.size() > (std::size_t{1} << 16)) budget.bytes(places * with.size());
  return budget.text(replaced(text, old, with, counted ? given.integer(2, -1) : -1));
}

Value indent(const Value& indented, const Arguments& arguments, Budget& budget) {
  const Bound given("indent", arguments, {"width", "first", "blank"}, 0);
  const Value& value = spoken(indented);
  if (!value.is_text()) fail(std::string("indent takes a text, not a ") + value.type_name());
  const bool named = given[0] != nullptr && given[0]->is_text();
  const std::int64_t width = named ? 0 : std::max<std::int64_t>(given.integer(0, 4), 0);
  budget.bytes(static_cast<std::size_t>(width));
  const std::string step = named ? *given.text(0) : std::string(static_cast<std::size_t>(width), ' ');
  std::string out;
  bool first = true;
  for (const std::string& line : split_lines(*value.as_text() + "\n", false)) {
    if (!first) out += '\n';
    const bool moves = first ? given.flag(1, false) : given.flag(2, false) || !line.empty();
    out += moves ? step + line : line;
    budget.bytes(out.size());
    first = false;
  }
  return Value::text(std::move(out), value.is_safe());
}

Value string(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("string", arguments, {}, 0);
  return soft(value, str(value, budget), budget);
}

Value safe(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("safe", arguments, {}, 0);
  return budget.text(str(value, budget), true);
}

Value escape(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("escape", arguments, {}, 0);
  return budget.text(value.is_safe() ? *value.as_text() : escaped_html(str(value, budget)), true);
}

Value format(const Value& value, const Arguments& arguments, Budget& budget) {
  if (!arguments.named.empty() || value.is_safe()) fail("format of these is not supported");
  return format_percent(str(value, budget), Value::sequence(arguments.positional, SequenceKind::kTuple), budget);
}

Value default_value(const Value& value, const Arguments& arguments, Budget&) {
  const Bound given("default", arguments, {"default_value", "boolean"}, 0);
  if (!value.is_undefined() && !(given.flag(1, false) && !value.truth())) return value;
  return given[0] != nullptr ? *given[0] : Value::text("");
}

// Parses as Python's float() does, but ASCII digits only.
std::optional<double> read_float(std::string_view text) {
  text = strip(text, nullptr, true, true);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  if (text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) {
    const std::string word = lower(text[0] == '-' ? text.substr(1) : text);
    const double sign = text[0] == '-' ? -1.0 : 1.0;
    if (word == "nan") return std::nan("");
    if (word == "inf" || word == "infinity") return sign * HUGE_VAL;
    if (text.find('_') != std::string_view::npos) fail("a number with _ is not supported");
    return std::nullopt;
  }
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec == std::errc::result_out_of_range) fail("a number out of range is not supported");
  if (text.starts_with("+") || read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> read_integer(std::string_view text) {
  text = strip(text, nullptr, true, true);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec == std::errc::result_out_of_range) fail("an integer does not fit 64 bits");
  if (text.find('_') != std::string_view::npos) fail("a number with _ is not supported");
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> as_float(const Value& value) {
  if (const std::string* text = value.as_text()) return read_float(*text);
  if (const auto* undefined = value.as<Undefined>()) fail(undefined->what + " is undefined");
  return value.as_number();
}

Value to_integer(const Value& value, const Arguments& arguments, Budget&) {
  const Bound given("int", arguments, {"default", "base"}, 0);
  if (given.integer(1, 10) != 10) fail("int with a base is not supported");
  if (value.as_integer()) return Value(*value.as_integer());
  if (const std::string* text = value.as_text()) {
    if (const auto number = read_integer(*text)) return Value(*number);
  }
  const std::optional<double> number = as_float(value);
  if (!number || !std::isfinite(*number)) return given[0] != nullptr ? *given[0] : Value(std::int64_t{0});
  if (*number >= 0x1p63 || *number < -0x1p63) fail("an integer does not fit 64 bits");
  return Value(static_cast<std::int64_t>(*number));
}

Value to_float(const Value& value, const Arguments& arguments, Budget&) {
  const Bound given("float", arguments, {"default"}, 0);
  if (const auto number = as_float(value)) return Value(*number);
  return given[0] != nullptr ? *given[0] : Value(0.0);
}

Value absolute(const Value& value, const Arguments& arguments, Budget&) {
  const Bound given("abs", arguments, {}, 0);
  if (const double* number = value.as<double>()) return Value(std::abs(*number));
  if (!value.as_integer()) fail(std::string("abs takes a number, not a ") + value.type_name());
  return *value.as_integer() < 0 ? negated(value) : Value(*value.as_integer());
}

Value round(const Value& value, const Arguments& arguments, Budget&) {
  const Bound given("round", arguments, {"precision", "method"}, 0);
  const std::string method = given[1] != nullptr && given[1]->is_text() ? *given[1]->as_text() : "common";
  if (given[1] != nullptr && !given[1]->is_text()) fail("round: method is a text");
  if (given.integer(0, 0) != 0) fail("round with a precision is not supported");
  if (!value.as_number()) fail(std::string("round takes a number, not a ") + value.type_name());
  if (value.as_integer() && method == "common") return Value(*value.as_integer());
  const double number = *value.as_number();
  if (method == "common") return Value(std::nearbyint(number));
  if (method != "ceil" && method != "floor") fail("round: method is common, ceil or floor");
  if (!std::isfinite(number)) fail("round of NaN or infinity");
  return Value(method == "ceil" ? std::ceil(number) : std::floor(number));
}

Value tojson(const Value& value, const Arguments& arguments, Budget& budget) {
  const Bound given("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  JsonLayout layout;
  layout.ensure_ascii = given.flag(0, false);
  layout.sort_keys = given.flag(3, false);
  if (given[1] != nullptr && !given[1]->is_none()) {
    const std::int64_t width = given[1]->is_text() ? 0 : std::max<std::int64_t>(given.integer(1, 0), 0);
    if (width > 64) fail("tojson: an indent of more than 64 is not supported");
    layout.indent = given[1]->is_text() ? *given.text(1) : std::string(static_cast<std::size_t>(width), ' ');
    if (layout.indent->size() > 64) fail("tojson: an indent of more than 64 is not supported");
    layout.item_separator = ",";
  }
  if (given[2] != nullptr && !given[2]->is_none()) {
    const Values pair = iterate(*given[2], budget);
    if (pair.size() != 2 || !pair[0].is_text() || !pair[1].is_text()) fail("tojson: separators are two texts");
    if (pair[0].as_text()->size() > 64 || pair[1].as_text()->size() > 64) fail("tojson: a separator is too long");
    layout.item_separator = *pair[0].as_text();
    layout.key_separator = *pair[1].as_text();
  }
  return budget.text(to_json(value, layout, budget));
}

const FilterTable kTextFilters = {
    {"upper", change<upper>},
    {"lower", change<lower>},
    {"capitalize", change<capitalized>},
    {"title", title},
    {"trim", trim},
    {"replace", replace},
    {"indent", indent},
    {"string", string},
    {"safe", safe},
    {"e", escape},
    {"escape", escape},
    {"format", format},
    {"default", default_value},
    {"d", default_value},
    {"int", to_integer},
    {"float", to_float},
    {"abs", absolute},
    {"round", round},
    {"tojson", tojson},
};

FilterFunction find_filter(std::string_view name) {
  for (const FilterTable* table : {&kTextFilters, &sequence_filters()}) {
    const auto found = table->find(name);
    if (found != table->end()) return found->second;
  }
  return nullptr;
}

}  // namespace

bool is_filter(std::string_view name) { return find_filter(name) != nullptr; }

Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Budget& budget) {
  const FilterFunction filter = find_filter(name);
  if (filter == nullptr) fail("filter '" + std::string(name) + "' is not supported");
  return filter(value, arguments, budget);
}

}  // namespace quire::chat
