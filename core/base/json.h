// A JSON document as a tree, for parts of a request that are kept as received: schemas, tools, arguments and template
// variables.
// Shape   members of an object are in the order received. Of two with the same name the later value counts, at the
//         earlier position. Lookup compares names, in O(log n): there is no hash for which a client could choose
//         colliding names.
// Owner   values.
// Thread  one at a time; reading: any.
// Fails   parse(): kInvalidArgument (no param: the caller knows the field). at(), get_...(): CHECK.
// Source  RFC 8259; integers beyond 64 bits are read as doubles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/result.h"

namespace quire::json {

class Value;
struct Member;
using Array = std::vector<Value>;

class Object {
 public:
  Object();
  Object(std::initializer_list<Member> members);
  Object(const Object&);
  Object(Object&&) noexcept;
  Object& operator=(const Object&);
  Object& operator=(Object&&) noexcept;
  ~Object();

  std::size_t size() const;
  bool empty() const { return size() == 0; }
  const Member* begin() const;
  const Member* end() const;

  Value* if_contains(std::string_view name);
  const Value* if_contains(std::string_view name) const;
  bool contains(std::string_view name) const { return if_contains(name) != nullptr; }
  const Value& at(std::string_view name) const;
  Value& operator[](std::string_view name);  // adds a null member if there is none
  void erase(std::string_view name);         // later members move up

 private:
  static constexpr std::size_t kFewMembers = 16;  // up to here lookup is linear

  std::size_t place_of(std::string_view name) const;  // size() if there is no such member

  std::vector<Member> members_;
  std::map<std::string, std::size_t, std::less<>> places_;  // indices into members_ by name; empty for few members
};

enum class Kind : std::uint8_t { kNull, kBool, kInt64, kUint64, kDouble, kString, kArray, kObject };

class Value {
 public:
  Value() = default;
  Value(std::nullptr_t) {}                                     // NOLINT: implicit by design, as all of these
  Value(bool flag) : state_(flag) {}                           // NOLINT
  Value(int number) : state_(std::int64_t{number}) {}          // NOLINT
  Value(std::int64_t number) : state_(number) {}               // NOLINT
  Value(std::uint64_t number) : state_(number) {}              // NOLINT
  Value(double number) : state_(number) {}                     // NOLINT
  Value(const char* text) : state_(std::string(text)) {}       // NOLINT
  Value(std::string_view text) : state_(std::string(text)) {}  // NOLINT
  Value(std::string text) : state_(std::move(text)) {}         // NOLINT
  Value(Array items) : state_(std::move(items)) {}             // NOLINT
  Value(Object members) : state_(std::move(members)) {}        // NOLINT

  Kind kind() const { return static_cast<Kind>(state_.index()); }
  bool is_null() const { return kind() == Kind::kNull; }
  bool is_bool() const { return kind() == Kind::kBool; }
  bool is_int64() const { return kind() == Kind::kInt64; }
  bool is_uint64() const { return kind() == Kind::kUint64; }
  bool is_double() const { return kind() == Kind::kDouble; }
  bool is_string() const { return kind() == Kind::kString; }
  bool is_array() const { return kind() == Kind::kArray; }
  bool is_object() const { return kind() == Kind::kObject; }
  bool is_number() const { return is_int64() || is_uint64() || is_double(); }
  bool is_text(std::string_view text) const { return is_string() && get_string() == text; }  // equals `text`

  bool get_bool() const { return get<bool>(); }
  std::int64_t get_int64() const { return get<std::int64_t>(); }
  std::uint64_t get_uint64() const { return get<std::uint64_t>(); }
  double get_double() const { return get<double>(); }
  double as_double() const;  // any number
  const std::string& get_string() const { return get<std::string>(); }
  std::string& get_string() { return get<std::string>(); }
  const Array& get_array() const { return get<Array>(); }
  Array& get_array() { return get<Array>(); }
  const Object& get_object() const { return get<Object>(); }
  Object& get_object() { return get<Object>(); }

  const Array* if_array() const { return std::get_if<Array>(&state_); }
  const Object* if_object() const { return std::get_if<Object>(&state_); }
  Object* if_object() { return std::get_if<Object>(&state_); }

 private:
  template <typename T>
  const T& get() const {
    const T* held = std::get_if<T>(&state_);
    CHECK(held != nullptr);
    return *held;
  }
  template <typename T>
  T& get() {
    T* held = std::get_if<T>(&state_);
    CHECK(held != nullptr);
    return *held;
  }

  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> state_;
};

struct Member {
  std::string name;
  Value value;
};

// Parses a whole document. Error messages continue a sentence about it: "is not JSON: …", "is nested more than … deep".
Result<Value> parse(std::string_view text, std::size_t max_depth);

// JSON on one line without white space. A double has the fewest digits that round-trip, and a point or an exponent.
std::string serialize(const Value& value);
std::string number_text(const Value& number);

}  // namespace quire::json
