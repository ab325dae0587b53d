// Tracks the position inside one JSON value, byte by byte: for the JSON of a model, which may break off anywhere.
// Shape   depth() is the number of open objects and lists.
// Owner   one per value.
// Thread  one at a time.
// Fails   push(): false if no JSON text continues with this byte, or if more than 64 objects and lists would be open.
// Source  RFC 8259, as a state machine without recursion; its only memory is the stack of open objects and lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::api::chat {

class JsonWalker {
 public:
  bool push(char c);

  std::size_t depth() const { return open_.size(); }
  // True if the value is complete. Never true for a number, whose end only the next byte shows.
  bool complete() const { return state_ == State::kAfterValue && open_.empty(); }
  bool after_value() const { return state_ == State::kAfterValue; }
  bool wants_value() const { return state_ == State::kValue || state_ == State::kFirstItem; }
  bool in_string() const { return state_ == State::kString || state_ == State::kEscape || state_ == State::kHex; }
  bool in_key() const { return is_key_ && in_string(); }

 private:
  enum class State : std::uint8_t {
    kValue,      // expects a value
    kFirstItem,  // expects a value or ]
    kFirstKey,   // expects a key or }
    kKey,        // expects a key
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

  bool push_string(char c);
  bool push_number(char c, bool& ended);
  bool begin_value(char c);
  bool after(char c);
  bool open(bool object);
  bool close(bool object);

  State state_ = State::kValue;
  bool is_key_ = false;         // the string is a key
  unsigned hex_left_ = 0;       // missing digits of a \uXXXX
  const char* rest_ = nullptr;  // missing bytes of a literal
  std::vector<bool> open_;      // open objects (true) and lists (false), outermost first
};

}  // namespace quire::api::chat
