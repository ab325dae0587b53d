#include "api/answer/parts/json_walker.h"

#include <string_view>

#include "api/answer/parts/marker_scanner.h"

namespace quire::api::chat {
namespace {

constexpr std::size_t kMaxDepth = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_one_of(char c, std::string_view set) { return set.find(c) != set.npos; }

}  // namespace

bool JsonWalker::push(char c) {
  if (in_string()) return push_string(c);
  if (state_ >= State::kMinus) {
    bool ended = false;
    if (!push_number(c, ended)) return false;
    if (!ended) return true;
    state_ = State::kAfterValue;
  }
  if (state_ == State::kLiteral) {
    if (c != *rest_) return false;
    if (*++rest_ == '\0') state_ = State::kAfterValue;
    return true;
  }
  if (is_space(c)) return true;
  switch (state_) {
    case State::kFirstItem:
      if (c == ']') return close(false);
      return begin_value(c);
    case State::kFirstKey:
      if (c == '}') return close(true);
      [[fallthrough]];
    case State::kKey:
      is_key_ = true;
      state_ = State::kString;
      return c == '"';
    case State::kColon:
      state_ = State::kValue;
      return c == ':';
    case State::kAfterValue:
      return after(c);
    default:
      return begin_value(c);
  }
}

bool JsonWalker::push_string(char c) {
  switch (state_) {
    case State::kEscape:
      state_ = c == 'u' ? State::kHex : State::kString;
      hex_left_ = 4;
      return is_one_of(c, "\"\\/bfnrtu");
    case State::kHex:
      if (--hex_left_ == 0) state_ = State::kString;
      return is_hex(c);
    default:
      break;
  }
  if (c == '\\') state_ = State::kEscape;
  if (c == '"') {
    state_ = is_key_ ? State::kColon : State::kAfterValue;
    is_key_ = false;
  }
  return static_cast<unsigned char>(c) >= 0x20;
}

// Sets `ended` if c is the first byte behind a complete number.
bool JsonWalker::push_number(char c, bool& ended) {
  const auto become = [&](State next) {
    state_ = next;
    return true;
  };
  const auto end = [&] {
    ended = true;
    return true;
  };
  switch (state_) {
    case State::kMinus:
      if (c == '0') return become(State::kZero);
      return is_digit(c) && become(State::kInteger);
    case State::kInteger:
      if (is_digit(c)) return true;
      [[fallthrough]];
    case State::kZero:
      if (c == '.') return become(State::kPoint);
      return is_one_of(c, "eE") ? become(State::kExponent) : end();
    case State::kPoint:
      return is_digit(c) && become(State::kFraction);
    case State::kFraction:
      if (is_digit(c)) return true;
      return is_one_of(c, "eE") ? become(State::kExponent) : end();
    case State::kExponent:
      if (is_one_of(c, "+-")) return become(State::kExponentSign);
      [[fallthrough]];
    case State::kExponentSign:
      return is_digit(c) && become(State::kExponentDigits);
    default:
      return is_digit(c) || end();
  }
}

bool JsonWalker::begin_value(char c) {
  const auto literal = [&](const char* rest) {
    rest_ = rest;
    state_ = State::kLiteral;
    return true;
  };
  switch (c) {
    case '{':
      return open(true);
    case '[':
      return open(false);
    case '"':
      is_key_ = false;
      state_ = State::kString;
      return true;
    case 't':
      return literal("rue");
    case 'f':
      return literal("alse");
    case 'n':
      return literal("ull");
    case '-':
      state_ = State::kMinus;
      return true;
    case '0':
      state_ = State::kZero;
      return true;
    default:
      state_ = State::kInteger;
      return is_digit(c);
  }
}

bool JsonWalker::after(char c) {
  if (open_.empty()) return false;
  if (c == ',') {
    state_ = open_.back() ? State::kKey : State::kValue;
    return true;
  }
  if (c == '}') return close(true);
  return c == ']' && close(false);
}

bool JsonWalker::open(bool object) {
  if (open_.size() == kMaxDepth) return false;
  open_.push_back(object);
  state_ = object ? State::kFirstKey : State::kFirstItem;
  return true;
}

bool JsonWalker::close(bool object) {
  if (open_.back() != object) return false;
  open_.pop_back();
  state_ = State::kAfterValue;
  return true;
}

}  // namespace quire::api::chat
