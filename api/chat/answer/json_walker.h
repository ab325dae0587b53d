// Follows one JSON value byte by byte and says where in it the text is: for the model's JSON, which may break off anywhere.
// Shape   depth() counts the objects and lists that are open.
// Owner   one per value.
// Thread  one at a time.
// Fails   push(): false where no JSON text goes on like this; lists in lists are followed 64 deep.
// Source  RFC 8259, as a table of states: no recursion, nothing is kept but what is open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::api::chat {

class JsonWalker {
 public:
  bool push(char c);

  std::size_t depth() const { return open_.size(); }
  // The value is complete, and is no number: a number's end is seen only by what follows.
  bool complete() const { return state_ == State::kAfterValue && open_.empty(); }
  bool after_value() const { return state_ == State::kAfterValue; }
  bool wants_value() const { return state_ == State::kValue || state_ == State::kFirstItem; }
  bool in_key() const { return is_key_ && in_string(); }

 private:
  enum class State : std::uint8_t {
    kValue,      // a value must come
    kFirstItem,  // a value or ]
    kFirstKey,   // a key or }
    kKey,        // a key must come
    kColon,
    kAfterValue,
    kString,
    kEscape,
    kHex,
    kLiteral,
    kMinus,
    kZero,
    kInteger,
    kPoint,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits,
  };

  bool in_string() const { return state_ == State::kString || state_ == State::kEscape || state_ == State::kHex; }
  bool push_string(char c);
  bool push_number(char c, bool& ended);
  bool begin_value(char c);
  bool after(char c);
  bool open(bool object);
  bool close(bool object);

  State state_ = State::kValue;
  bool is_key_ = false;         // of the string
  unsigned hex_left_ = 0;       // digits of a \u
  const char* rest_ = nullptr;  // of a literal
  std::vector<bool> open_;      // true: an object
};

}  // namespace quire::api::chat
