#include "core/chat/value.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/chat/budget.h"
#include "core/chat/template_error.h"
#include "core/text/unicode/utf8.h"

namespace quire::chat {
namespace {

int depth_above(int depth) {
  if (depth >= kMaxValueDepth) fail("a value is nested more than " + std::to_string(kMaxValueDepth) + " deep");
  return depth + 1;
}

bool is_ordered_sequence(const Sequence& sequence) {
  return sequence.kind == SequenceKind::kList || sequence.kind == SequenceKind::kTuple;
}

bool equal_sequences(const Sequence& a, const Sequence& b) {
  if (a.kind != b.kind) return false;
  const auto same = [](const Value& x, const Value& y) { return equal(x, y); };
  return std::equal(a.items->values.begin(), a.items->values.end(), b.items->values.begin(), b.items->values.end(),
                    same);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.index.begin(), a.index.end(), [&](const auto& entry) {
    const auto found = b.index.find(entry.first);
    return found != b.index.end() && equal(a.entries[entry.second].second, b.entries[found->second].second);
  });
}

// Compares an int and a float as exact real numbers.
int compare_mixed(std::int64_t a, double b) {
  if (b >= 0x1p63) return -1;
  if (b < -0x1p63) return 1;
  const auto whole = static_cast<std::int64_t>(b);
  if (a != whole) return a < whole ? -1 : 1;
  const double rest = b - std::trunc(b);
  return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

std::optional<int> compare_numbers(const Value& a, const Value& b) {  // nullopt if one is NaN
  const std::optional<std::int64_t> left = a.as_integer(), right = b.as_integer();
  if (left && right) return *left < *right ? -1 : *left > *right ? 1 : 0;
  const double x = *a.as_number(), y = *b.as_number();
  if (std::isnan(x) || std::isnan(y)) return std::nullopt;
  if (left) return compare_mixed(*left, y);
  if (right) return -compare_mixed(*right, x);
  return x < y ? -1 : x > y ? 1 : 0;
}

std::string sized(const std::string& text) { return std::to_string(text.size()) + ":" + text; }

}  // namespace

void Dict::set(Value key, Value value) {
  depth = std::max(depth, depth_above(std::max(key.depth(), value.depth())));
  const auto [at, fresh] = index.try_emplace(key_text(key), entries.size());
  if (fresh) {
    entries.emplace_back(std::move(key), std::move(value));
  } else {
    entries[at->second].second = std::move(value);
  }
}

const Value* Dict::find(const Value& key) const {
  const auto found = index.find(key_text(key));
  return found == index.end() ? nullptr : &entries[found->second].second;
}

const Value* Dict::find(std::string_view key) const { return find(Value::text(std::string(key))); }

Value Value::sequence(Values values, SequenceKind kind) {
  int depth = 0;
  for (const Value& value : values) depth = std::max(depth, value.depth());
  auto items = std::make_shared<const Items>(Items{std::move(values), depth_above(depth)});
  return Value(State(Sequence{kind, std::move(items)}));
}

int Value::depth() const {
  if (const auto* sequence = as<Sequence>()) return sequence->items->depth;
  if (const Dict* dict = as_dict()) return dict->depth;
  if (const auto* method = as<Method>()) return method->self->depth() + 1;
  if (const auto* iterator = as<std::shared_ptr<Iterator>>()) {
    int depth = 0;
    for (const Value& value : (*iterator)->values) depth = std::max(depth, value.depth());
    return depth + 1;
  }
  return 0;
}

std::optional<std::int64_t> Value::as_integer() const {
  if (const bool* flag = as<bool>()) return *flag ? 1 : 0;
  if (const auto* number = as<std::int64_t>()) return *number;
  return std::nullopt;
}

std::optional<double> Value::as_number() const {
  if (const auto whole = as_integer()) return static_cast<double>(*whole);
  if (const double* number = as<double>()) return *number;
  return std::nullopt;
}

bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (const auto number = as_number()) return *number != 0;
  const std::optional<std::size_t> length = length_of(*this);
  return !length || *length != 0;
}

const char* Value::type_name() const {
  static constexpr const char* kSequences[] = {"list", "tuple", "range", "dict_keys", "dict_values", "dict_items"};
  static constexpr const char* kOthers[] = {"Undefined", "NoneType", "bool",           "int",       "float",
                                            "str",       "list",     "dict",           "generator", "LoopContext",
                                            "Namespace", "Macro",    "builtin_method", "function"};
  if (const auto* sequence = as<Sequence>()) return kSequences[static_cast<int>(sequence->kind)];
  return is_safe() ? "Markup" : kOthers[state_.index()];
}

const Value& spoken(const Value& value) {
  static const Value empty = Value::text("");
  const None* none = value.as<None>();
  return none != nullptr && none->silent ? empty : value;
}

bool equal(const Value& a, const Value& b) {
  if (a.as_number() && b.as_number()) return compare_numbers(a, b) == 0;
  if (a.state().index() != b.state().index()) return false;
  if (a.is_undefined() || a.is_none()) return true;
  if (a.is_text()) return *a.as_text() == *b.as_text();
  if (const auto* sequence = a.as<Sequence>()) {
    if (!is_ordered_sequence(*sequence)) fail(std::string("comparing a ") + a.type_name() + " is not supported");
    return equal_sequences(*sequence, *b.as<Sequence>());
  }
  if (const Dict* dict = a.as_dict()) return equal_dicts(*dict, *b.as_dict());
  if (const auto* iterator = a.as<std::shared_ptr<Iterator>>()) return *iterator == *b.as<std::shared_ptr<Iterator>>();
  if (const auto* loop = a.as<std::shared_ptr<Loop>>()) return *loop == *b.as<std::shared_ptr<Loop>>();
  if (const auto* space = a.as<Namespace*>()) return *space == *b.as<Namespace*>();
  if (const auto* macro = a.as<const Macro*>()) return *macro == *b.as<const Macro*>();
  if (const auto* function = a.as<Function>()) return *function == *b.as<Function>();
  fail(std::string("comparing a ") + a.type_name() + " is not supported");
}

bool less(const Value& a, const Value& b) {
  if (a.as_number() && b.as_number()) {
    const std::optional<int> order = compare_numbers(a, b);
    return order && *order < 0;
  }
  if (a.is_text() && b.is_text()) return *a.as_text() < *b.as_text();  // UTF-8 has the order of code points
  const auto *left = a.as<Sequence>(), *right = b.as<Sequence>();
  if (left != nullptr && right != nullptr && left->kind == right->kind && is_ordered_sequence(*left)) {
    const Values &x = left->items->values, &y = right->items->values;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(x[i], y[i])) return less(x[i], y[i]);
    }
    return x.size() < y.size();
  }
  fail(std::string("no order between ") + a.type_name() + " and " + b.type_name());
}

std::string key_text(const Value& value) {
  if (const std::string* text = value.as_text()) return "s" + *text;
  if (const auto whole = value.as_integer()) return "n" + std::to_string(*whole);
  if (const double* number = value.as<double>()) {
    if (*number >= -0x1p63 && *number < 0x1p63 && *number == std::trunc(*number)) {
      return "n" + std::to_string(static_cast<std::int64_t>(*number));
    }
    return "f" + std::to_string(std::bit_cast<std::uint64_t>(*number));
  }
  if (value.is_none()) return "0";
  const auto* sequence = value.as<Sequence>();
  if (sequence == nullptr || sequence->kind != SequenceKind::kTuple) {
    fail(std::string("a ") + value.type_name() + " cannot be a key");
  }
  std::string key = "t";
  for (const Value& item : sequence->items->values) key += sized(key_text(item));
  return key;
}

Values iterate(const Value& given, Budget& budget) {
  const Value& value = spoken(given);
  if (value.is_undefined()) return {};
  if (const std::string* text = value.as_text()) {
    budget.steps(text->size());
  } else if (const auto length = length_of(value)) {
    budget.steps(*length);
  }
  if (const auto* sequence = value.as<Sequence>()) return sequence->items->values;
  Values values;
  if (const Dict* dict = value.as_dict()) {
    for (const auto& [key, ignored] : dict->entries) values.push_back(key);
    return values;
  }
  if (const std::string* text = value.as_text()) {
    for (std::size_t at = 0, begin = 0; at < text->size(); begin = at) {
      text::next_code_point(*text, at);
      values.push_back(Value::text(text->substr(begin, at - begin)));
    }
    return values;
  }
  if (const auto* iterator = value.as<std::shared_ptr<Iterator>>()) {
    if (!(*iterator)->failure.empty()) fail((*iterator)->failure);
    values.assign((*iterator)->values.begin() + static_cast<std::ptrdiff_t>((*iterator)->next),
                  (*iterator)->values.end());
    (*iterator)->next = (*iterator)->values.size();
    return values;
  }
  fail(std::string("a ") + value.type_name() + " is not iterable");
}

bool is_iterable(const Value& value) {
  return value.is_undefined() || value.is_text() || value.as<Sequence>() != nullptr || value.as_dict() != nullptr ||
         value.as<std::shared_ptr<Iterator>>() != nullptr || value.as<std::shared_ptr<Loop>>() != nullptr;
}

std::optional<std::size_t> length_of(const Value& given) {
  const Value& value = spoken(given);
  if (value.is_undefined()) return 0;
  if (const auto* sequence = value.as<Sequence>()) return sequence->items->values.size();
  if (const Dict* dict = value.as_dict()) return dict->entries.size();
  if (const std::string* text = value.as_text()) {
    return static_cast<std::size_t>(
        std::count_if(text->begin(), text->end(), [](char c) { return !text::is_continuation_byte(c); }));
  }
  return std::nullopt;
}

}  // namespace quire::chat
