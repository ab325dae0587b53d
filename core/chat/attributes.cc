#include "core/chat/attributes.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/chat/arguments.h"
#include "core/chat/python_text.h"
#include "core/text/unicode/utf8.h"

namespace quire::chat {
namespace {

using Names = std::set<std::string_view>;
using MethodFunction = Value (*)(const Value& self, const Arguments& arguments, Budget& budget);

// Python attributes and methods that are not implemented: access is an error, not undefined.
const Names kOtherOfText = {"casefold",  "center",      "encode",    "expandtabs", "format_map",   "isalnum",
                            "isalpha",   "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
                            "isnumeric", "isprintable", "isspace",   "istitle",    "isupper",      "ljust",
                            "maketrans", "rindex",      "rjust",     "swapcase",   "translate",    "zfill"};
const Names kOtherOfNumber = {"real",     "imag",       "numerator", "denominator", "bit_length",       "bit_count",
                              "to_bytes", "from_bytes", "conjugate", "hex",         "as_integer_ratio", "is_integer",
                              "fromhex"};
const Names kOtherOfView = {"isdisjoint", "mapping", "start", "stop", "step", "index", "count"};
const Names kOtherOfIterator = {"close", "send", "throw", "gi_frame", "gi_code", "gi_running", "gi_yieldfrom"};
const Names kChangesList = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
const Names kChangesDict = {"clear", "pop", "popitem", "setdefault", "update"};

Value texts(const std::vector<std::string>& pieces, Budget& budget, SequenceKind kind = SequenceKind::kList) {
  Values values;
  for (const std::string& piece : pieces) values.push_back(budget.text(piece));
  return budget.list(std::move(values), kind);
}

template <bool kLeft, bool kRight>
Value method_strip(const Value& self, const Arguments& arguments, Budget& budget) {
  const Bound given("strip", arguments, {"chars"}, 0);
  return budget.text(std::string(strip(*self.as_text(), given.text(0), kLeft, kRight)));
}

template <bool kFromRight>
Value method_split(const Value& self, const Arguments& arguments, Budget& budget) {
  const Bound given("split", arguments, {"sep", "maxsplit"}, 0);
  budget.bytes(self.as_text()->size());
  return texts(split(*self.as_text(), given.text(0), given.integer(1, -1), kFromRight), budget);
}

template <bool kAtEnd>
Value method_affix(const Value& self, const Arguments& arguments, Budget&) {
  const Bound given("startswith", arguments, {"prefix"}, 1);
  const std::string& text = *self.as_text();
  const auto has = [&](const Value& affix) {
    if (!affix.is_text()) fail(std::string("startswith takes a text, not a ") + affix.type_name());
    return kAtEnd ? text.ends_with(*affix.as_text()) : text.starts_with(*affix.as_text());
  };
  const auto* tuple = given[0]->as<Sequence>();
  if (tuple == nullptr || tuple->kind != SequenceKind::kTuple) return Value(has(*given[0]));
  return Value(std::any_of(tuple->items->values.begin(), tuple->items->values.end(), has));
}

template <bool kAtEnd>
Value method_remove_affix(const Value& self, const Arguments& arguments, Budget& budget) {
  const Bound given("removeprefix", arguments, {"prefix"}, 1);
  const std::string &text = *self.as_text(), *affix = given.text(0);
  if (affix == nullptr) fail("removeprefix takes a text");
  const bool has = kAtEnd ? text.ends_with(*affix) : text.starts_with(*affix);
  if (!has) return self;
  return budget.text(kAtEnd ? text.substr(0, text.size() - affix->size()) : text.substr(affix->size()));
}

template <bool kFromRight>
Value method_partition(const Value& self, const Arguments& arguments, Budget& budget) {
  const Bound given("partition", arguments, {"sep"}, 1);
  if (given.text(0) == nullptr) fail("partition takes a text");
  std::vector<std::string> pieces = split(*self.as_text(), given.text(0), 1, kFromRight);
  if (pieces.size() == 2) {
    pieces.insert(pieces.begin() + 1, *given.text(0));
  } else {
    pieces.insert(kFromRight ? pieces.begin() : pieces.end(), 2, "");
  }
  return texts(pieces, budget, SequenceKind::kTuple);
}

template <std::string (*kChange)(std::string_view)>
Value method_change(const Value& self, const Arguments& arguments, Budget& budget) {
  const Bound given("this method", arguments, {}, 0);
  return budget.text(kChange(*self.as_text()));
}

Value method_replace(const Value& self, const Arguments& arguments, Budget& budget) {
  const Bound given("replace", arguments, {"old", "new", "count"}, 2);
  if (given.text(0) == nullptr || given.text(1) == nullptr) fail("replace takes texts");
  // Counts the largest possible result first: every position where `old` fits has a `new`.
  const std::size_t old_bytes = std::max<std::size_t>(given.text(0)->size(), 1);
  const std::size_t places = self.as_text()->size() / old_bytes + 1;
  if (given.text(1)->size() > old_bytes && places * given.text(1)->size() > (std::size_t{1} << 16)) {
    budget.bytes(places * given.text(1)->size());
  }
  return budget.text(replaced(*self.as_text(), *given.text(0), *given.text(1), given.integer(2, -1)));
}

Value method_join(const Value& self, const Arguments& arguments, Budget& budget) {
  const Bound given("join", arguments, {"iterable"}, 1);
  std::string out;
  bool first = true;
  for (const Value& value : iterate(*given[0], budget)) {
    if (!value.is_text()) fail(std::string("join takes texts, not a ") + value.type_name());
    if (!first) out += *self.as_text();
    out += *value.as_text();
    budget.bytes(out.size());
    first = false;
  }
  return Value::text(std::move(out));
}

// The arguments that the fields of a format text name, in turn: {}, {0} or {name}.
class Fields {
 public:
  explicit Fields(const Arguments& arguments) : arguments_(arguments) {}

  const Value& operator[](std::string_view field) {
    if (field.empty()) return at(next_++, /*counted=*/true);
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (std::all_of(field.begin(), field.end(), is_digit)) {
      if (field.size() > 4) fail("format has no argument " + std::string(field));
      return at(std::stoul(std::string(field)), /*counted=*/false);
    }
    if (field.find_first_of("!:.[{") != field.npos) fail("format with {" + std::string(field) + "} is not supported");
    for (const auto& [name, value] : arguments_.named) {
      if (name == field) return value;
    }
    fail("format has no argument '" + std::string(field) + "'");
  }

 private:
  const Value& at(std::size_t place, bool counted) {
    if (counts_ && *counts_ != counted) fail("format with both {} and {0} is not possible");
    counts_ = counted;
    if (place >= arguments_.positional.size()) fail("format has no argument " + std::to_string(place));
    return arguments_.positional[place];
  }

  const Arguments& arguments_;
  std::size_t next_ = 0;
  std::optional<bool> counts_;
};

Value method_format(const Value& self, const Arguments& arguments, Budget& budget) {
  if (self.is_safe()) fail("format of a safe text is not supported");
  const std::string_view text = *self.as_text();
  Fields fields(arguments);
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c != '{' && c != '}') {
      out += c;
    } else if (text.substr(at + 1, 1) == std::string_view(&c, 1)) {
      out += text[at++];
    } else {
      const std::size_t end = text.find('}', at);
      if (c == '}' || end == text.npos) fail("format has a single brace; {{ and }} are braces of the text");
      out += str(fields[text.substr(at + 1, end - at - 1)], budget);
      budget.grown(out);
      at = end;
    }
  }
  return budget.text(std::move(out));
}

Value method_splitlines(const Value& self, const Arguments& arguments, Budget& budget) {
  const Bound given("splitlines", arguments, {"keepends"}, 0);
  budget.bytes(self.as_text()->size());
  return texts(split_lines(*self.as_text(), given.flag(0, false)), budget);
}

template <bool kFromRight>
Value method_find(const Value& self, const Arguments& arguments, Budget&) {
  const Bound given("find", arguments, {"sub"}, 1);
  if (given.text(0) == nullptr) fail("find takes a text");
  const std::string& text = *self.as_text();
  const std::size_t found = kFromRight ? text.rfind(*given.text(0)) : text.find(*given.text(0));
  if (found == std::string::npos) return Value(std::int64_t{-1});
  return Value::integer(*length_of(Value::text(text.substr(0, found))));
}

Value method_index(const Value& self, const Arguments& arguments, Budget& budget) {
  Value found = method_find<false>(self, arguments, budget);
  if (*found.as_integer() < 0) fail("substring not found");
  return found;
}

Value method_count(const Value& self, const Arguments& arguments, Budget&) {
  const Bound given("count", arguments, {"sub"}, 1);
  const std::string &text = *self.as_text(), *what = given.text(0);
  if (what == nullptr) fail("count takes a text");
  if (what->empty()) return Value::integer(*length_of(self) + 1);
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(*what, at)) != std::string::npos; at += what->size()) ++count;
  return Value::integer(count);
}

Value item_count(const Value& self, const Arguments& arguments, Budget&) {
  const Bound given("count", arguments, {"value"}, 1);
  const Values& values = self.as<Sequence>()->items->values;
  const auto same = [&](const Value& value) { return equal(value, *given[0]); };
  return Value::integer(static_cast<std::size_t>(std::count_if(values.begin(), values.end(), same)));
}

Value item_index(const Value& self, const Arguments& arguments, Budget&) {
  const Bound given("index", arguments, {"value"}, 1);
  const Values& values = self.as<Sequence>()->items->values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (equal(values[i], *given[0])) return Value::integer(i);
  }
  fail("the value is not in the list");
}

Value copy(const Value& self, const Arguments& arguments, Budget&) {
  const Bound given("copy", arguments, {}, 0);
  return self;
}

template <SequenceKind kWhat>
Value dict_view(const Value& self, const Arguments& arguments, Budget& budget) {
  const Bound given("this method", arguments, {}, 0);
  Values values;
  for (const auto& [key, value] : self.as_dict()->entries) {
    if (kWhat == SequenceKind::kItems) {
      values.push_back(Value::sequence({key, value}, SequenceKind::kTuple));
    } else {
      values.push_back(kWhat == SequenceKind::kKeys ? key : value);
    }
  }
  return budget.list(std::move(values), kWhat);
}

Value dict_get(const Value& self, const Arguments& arguments, Budget&) {
  if (!arguments.named.empty()) fail("get takes no named arguments");
  const Bound given("get", arguments, {"key", "default"}, 1);
  const Value* found = given[0]->is_undefined() ? nullptr : self.as_dict()->find(*given[0]);
  if (found != nullptr) return *found;
  return given[1] != nullptr ? *given[1] : Value();
}

using Methods = std::map<std::string_view, MethodFunction>;

const Methods kTextMethods = {
    {"strip", method_strip<true, true>},
    {"lstrip", method_strip<true, false>},
    {"rstrip", method_strip<false, true>},
    {"split", method_split<false>},
    {"rsplit", method_split<true>},
    {"startswith", method_affix<false>},
    {"endswith", method_affix<true>},
    {"removeprefix", method_remove_affix<false>},
    {"removesuffix", method_remove_affix<true>},
    {"partition", method_partition<false>},
    {"rpartition", method_partition<true>},
    {"upper", method_change<upper>},
    {"lower", method_change<lower>},
    {"title", method_change<titled>},
    {"capitalize", method_change<capitalized>},
    {"replace", method_replace},
    {"join", method_join},
    {"format", method_format},
    {"splitlines", method_splitlines},
    {"find", method_find<false>},
    {"rfind", method_find<true>},
    {"index", method_index},
    {"count", method_count},
};
const Methods kListMethods = {{"count", item_count}, {"index", item_index}, {"copy", copy}};
const Methods kTupleMethods = {{"count", item_count}, {"index", item_index}};
const Methods kDictMethods = {{"get", dict_get},
                              {"copy", copy},
                              {"keys", dict_view<SequenceKind::kKeys>},
                              {"values", dict_view<SequenceKind::kValues>},
                              {"items", dict_view<SequenceKind::kItems>}};
const Methods kNoMethods;
const Names kNoNames, kFromKeys = {"fromkeys"};

struct Reach {
  const Methods& methods;  // callable
  const Names& refused;    // of Python, not implemented
  const Names& changing;   // of Python, undefined in the sandbox
};

Reach reach_of(const Value& value) {
  if (value.is_text()) return {kTextMethods, kOtherOfText, kNoNames};
  if (value.as_dict() != nullptr) return {kDictMethods, kFromKeys, kChangesDict};
  if (value.as_number()) return {kNoMethods, kOtherOfNumber, kNoNames};
  if (value.as<std::shared_ptr<Iterator>>() != nullptr) return {kNoMethods, kOtherOfIterator, kNoNames};
  const auto* sequence = value.as<Sequence>();
  if (sequence == nullptr) return {kNoMethods, kNoNames, kNoNames};
  if (sequence->kind == SequenceKind::kList) return {kListMethods, kNoNames, kChangesList};
  return sequence->kind == SequenceKind::kTuple ? Reach{kTupleMethods, kNoNames, kNoNames}
                                                : Reach{kNoMethods, kOtherOfView, kNoNames};
}

[[noreturn]] void refuse(const Value& object, const std::string& name) {
  fail("'" + name + "' of a " + object.type_name() + " is not supported");
}

void require_defined(const Value& object) {
  if (const auto* undefined = object.as<Undefined>()) fail(undefined->what + " is undefined");
}

Value missing(const Value& object, const std::string& name) {
  return Value::undefined("'" + name + "' of a " + object.type_name());
}

// The result of Python's getattr; nothing if there is no such attribute.
std::optional<Value> python_attribute(const Value& object, const std::string& name) {
  if (const auto* space = object.as<Namespace*>()) {
    const auto found = (*space)->values.find(name);
    return found == (*space)->values.end() ? std::nullopt : std::optional(found->second);
  }
  if (object.as<const Macro*>() != nullptr || object.as<Function>() != nullptr) refuse(object, name);
  if (object.as<Method>() != nullptr) return missing(object, name);  // tool.items.type, where a key was meant
  if (name.starts_with("__") && name.ends_with("__")) return missing(object, name);
  const Reach reach = reach_of(object);
  if (reach.refused.count(name) != 0) refuse(object, name);
  if (reach.changing.count(name) != 0) return missing(object, name);
  if (reach.methods.count(name) == 0) return std::nullopt;
  return Value(Value::State(Method{std::make_shared<const Value>(object), name}));
}

std::optional<Value> python_item(const Value& object, const Value& key) {
  if (const Dict* dict = object.as_dict()) {
    const bool hashable = !key.is_undefined() && key.as_dict() == nullptr;
    const auto* sequence = key.as<Sequence>();
    if (!hashable || (sequence != nullptr && sequence->kind != SequenceKind::kTuple)) return std::nullopt;
    const Value* found = dict->find(key);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  }
  const auto* sequence = object.as<Sequence>();
  const bool indexed = object.is_text() || (sequence != nullptr && sequence->kind <= SequenceKind::kRange);
  const std::optional<std::int64_t> index = key.as_integer();
  if (!indexed || !index) return std::nullopt;
  const auto length = static_cast<std::int64_t>(*length_of(object));
  const std::int64_t place = *index < 0 ? *index + length : *index;
  if (place < 0 || place >= length) return std::nullopt;
  if (sequence != nullptr) return sequence->items->values[static_cast<std::size_t>(place)];
  std::size_t begin = 0, end = 0;
  for (std::int64_t i = 0; i <= place; ++i) begin = end, text::next_code_point(*object.as_text(), end);
  return Value::text(object.as_text()->substr(begin, end - begin), object.is_safe());
}

}  // namespace

Value get_attribute(const Value& object, const std::string& name) {
  require_defined(object);
  if (std::optional<Value> found = python_attribute(object, name)) return *std::move(found);
  if (std::optional<Value> found = python_item(object, Value::text(name))) return *std::move(found);
  return missing(object, name);
}

Value get_item(const Value& object, const Value& key) {
  require_defined(object);
  if (std::optional<Value> found = python_item(object, key)) return *std::move(found);
  if (key.is_text()) {
    if (std::optional<Value> found = python_attribute(object, *key.as_text())) return *std::move(found);
    return missing(object, *key.as_text());
  }
  return missing(object, "item");
}

Value call_method(const Method& method, const Arguments& arguments, Budget& budget) {
  if (method.self->is_safe()) refuse(*method.self, method.name);
  const Methods& methods = reach_of(*method.self).methods;
  const auto found = methods.find(method.name);
  if (found == methods.end()) refuse(*method.self, method.name);
  return found->second(*method.self, arguments, budget);
}

}  // namespace quire::chat
