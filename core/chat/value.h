// The value of a template expression: Python's values as far as chat templates use them.
// Shape   text is valid UTF-8. Lists and dicts are immutable (as in jinja2's sandbox), so copies share them.
// Owner   a Value shares its parts. The Renderer owns namespaces and macros and outlives every Value it made.
// Thread  any, one at a time.
// Fails   TemplateError if Python raises, and for depth beyond kMaxValueDepth.
// Source  Python's data model and jinja2 3.1.6's Undefined, Namespace and LoopContext.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace quire::chat {

inline constexpr int kMaxValueDepth = 64;  // lists in lists in dicts ...: printing and comparing recurse this deep

class Budget;
class Value;
class Scope;
struct Node;
struct Macro;
struct Namespace;
struct Loop;
using Values = std::vector<Value>;

struct Undefined {
  std::string what;  // the 'name' in "'name' is undefined", for the error when it is used
};
struct None {
  bool silent = false;  // a message's null content: none in every test, "" where Python would print None or fail
};
struct Text {
  std::shared_ptr<const std::string> text;
  bool safe = false;  // markupsafe.Markup: + escapes the other operand
};
enum class SequenceKind { kList, kTuple, kRange, kKeys, kValues, kItems };
struct Items {
  Values values;
  int depth = 0;
};
struct Sequence {
  SequenceKind kind;
  std::shared_ptr<const Items> items;
};
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  // key_text() of the key → entry. Not a hash table: clients choose keys and could make them collide.
  std::map<std::string, std::size_t> index;
  int depth = 0;

  void set(Value key, Value value);
  const Value* find(const Value& key) const;  // null if absent; fails for unhashable keys
  const Value* find(std::string_view key) const;
};
struct Iterator {  // a Python generator: can be read once
  Values values;
  std::size_t next = 0;
  std::string failure;  // error of making it, raised when it is read (as in Python)
};
struct Method {
  std::shared_ptr<const Value> self;
  std::string name;
};
enum class Function { kRange, kDict, kNamespace, kRaise, kStrftimeNow };

class Value {
 public:
  using State =
      std::variant<Undefined, None, bool, std::int64_t, double, Text, Sequence, std::shared_ptr<const Dict>,
                   std::shared_ptr<Iterator>, std::shared_ptr<Loop>, Namespace*, const Macro*, Method, Function>;

  Value() : state_(None{}) {}
  static Value silent_none() { return Value(State(None{true})); }
  Value(State state) : state_(std::move(state)) {}  // NOLINT: implicit by design
  static Value undefined(std::string what) { return Value(State(Undefined{std::move(what)})); }
  static Value text(std::string text, bool safe = false) {
    return Value(State(Text{std::make_shared<const std::string>(std::move(text)), safe}));
  }
  static Value integer(std::size_t number) { return Value(State(static_cast<std::int64_t>(number))); }
  static Value sequence(Values values, SequenceKind kind = SequenceKind::kList);
  static Value dict(Dict dict) { return Value(State(std::make_shared<const Dict>(std::move(dict)))); }
  static Value iterator(Values values) {
    return Value(State(std::make_shared<Iterator>(Iterator{std::move(values), 0, ""})));
  }

  const State& state() const { return state_; }
  template <typename T>
  const T* as() const {
    return std::get_if<T>(&state_);
  }
  const std::string* as_text() const {
    const Text* text = as<Text>();
    return text != nullptr ? text->text.get() : nullptr;
  }
  const Dict* as_dict() const {
    const auto* dict = as<std::shared_ptr<const Dict>>();
    return dict != nullptr ? dict->get() : nullptr;
  }
  bool is_undefined() const { return as<Undefined>() != nullptr; }
  bool is_none() const { return as<None>() != nullptr; }
  bool is_text() const { return as<Text>() != nullptr; }
  bool is_safe() const { return is_text() && as<Text>()->safe; }
  std::optional<std::int64_t> as_integer() const;  // True is 1
  std::optional<double> as_number() const;

  bool truth() const;
  int depth() const;
  const char* type_name() const;  // Python's name: "str", "dict", ...

 private:
  State state_;
};

struct Namespace {
  std::map<std::string, Value> values;
};

struct Macro {
  const Node* node;
  Scope* scope;  // the scope that defined it
};

// The state of one running for loop.
struct Loop {
  const Node* node = nullptr;
  Scope* scope = nullptr;  // scope around the for
  bool running = true;     // false after the loop ended: a stored loop can then no longer be called
  std::deque<Value> pending;
  std::size_t next_unfiltered = 0;  // index in `source` of the first item that the filter has not seen
  Values source;
  Value current, previous;
  std::size_t index0 = 0;
  int depth0 = 0;
};

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

// The value, or an empty text if it is a silent None: for printing, joining and attribute access.
const Value& spoken(const Value& value);
bool equal(const Value& a, const Value& b);
bool less(const Value& a, const Value& b);  // TemplateError if Python has no order
// Text key by which dicts and sets find a value; the same for equal values. Lists and dicts cannot be keys.
std::string key_text(const Value& value);
// The items of Python's iteration: a dict's keys, a text's characters. Uses an iterator up. Costs a step for each item,
// for a text each byte, for an iterator nothing (its items were counted when it was made).
Values iterate(const Value& value, Budget& budget);
bool is_iterable(const Value& value);
std::optional<std::size_t> length_of(const Value& value);

}  // namespace quire::chat
