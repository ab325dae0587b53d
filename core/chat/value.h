// What an expression of a template is worth: Python's values as far as chat templates see them.
// Shape   text is valid UTF-8. Lists and dicts never change once made (the sandbox refuses it), so copies share them.
// Owner   a Value shares its parts; namespaces and macros belong to the Renderer, which outlives every Value it made.
// Thread  any one at a time.
// Fails   TemplateError where Python raises; depth past kMaxValueDepth.
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
  std::string what;  // 'name' is undefined: for the error of who uses it
};
struct None {
  bool silent = false;  // of a message's null content: none to every test, "" where Python would print None or fail
};
struct Text {
  std::shared_ptr<const std::string> text;
  bool safe = false;  // markupsafe.Markup: + escapes what it is joined with
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
  std::map<std::string, std::size_t> index;  // key_text() of the key -> entry; ordered: keys come from clients
  int depth = 0;

  void set(Value key, Value value);
  const Value* find(const Value& key) const;  // null where absent; unhashable keys fail
  const Value* find(std::string_view key) const;
};
struct Iterator {  // what Python's generators are: read once
  Values values;
  std::size_t next = 0;
  std::string failure;  // why it gives nothing, told when it is read and not when it is made
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
  const char* type_name() const;  // Python's: "str", "dict", ...

 private:
  State state_;
};

struct Namespace {
  std::map<std::string, Value> values;
};

struct Macro {
  const Node* node;
  Scope* scope;  // where it was defined
};

// The state of one running for.
struct Loop {
  const Node* node = nullptr;
  Scope* scope = nullptr;  // around the for
  bool running = true;     // false once the for has ended: a kept loop can then no longer be called
  std::deque<Value> pending;
  std::size_t next_unfiltered = 0;  // of source: items before it passed the filter into pending, or failed it
  Values source;
  Value current, previous;
  std::size_t index0 = 0;
  int depth0 = 0;
};

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

// The value, or an empty text where it is a silent None: for what would print it, join it, look into it.
const Value& spoken(const Value& value);
bool equal(const Value& a, const Value& b);
bool less(const Value& a, const Value& b);  // TypeError where Python has no order
// Equal for equal keys: what a dict or a set finds a value by. Lists and dicts cannot be keys.
std::string key_text(const Value& value);
// The items Python's iteration gives: a dict's keys, a text's characters. An iterator is used up. Each costs a step.
Values iterate(const Value& value, Budget& budget);
bool is_iterable(const Value& value);
std::optional<std::size_t> length_of(const Value& value);

}  // namespace quire::chat
