#include "core/base/json.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <functional>
#include <limits>

#include "core/base/json_string.h"

namespace quire::json {

Object::Object() = default;
Object::Object(std::initializer_list<Member> members) {
  for (const Member& member : members) (*this)[member.name] = member.value;
}
Object::Object(const Object&) = default;
Object::Object(Object&&) noexcept = default;
Object& Object::operator=(const Object&) = default;
Object& Object::operator=(Object&&) noexcept = default;
Object::~Object() = default;

std::size_t Object::size() const { return members_.size(); }
const Member* Object::begin() const { return members_.data(); }
const Member* Object::end() const { return members_.data() + members_.size(); }

std::size_t Object::place_of(std::string_view name) const {
  if (!places_.empty()) {
    const auto found = places_.find(name);
    return found == places_.end() ? members_.size() : found->second;
  }
  const auto found = std::ranges::find(members_, name, &Member::name);
  return static_cast<std::size_t>(found - members_.begin());
}

Value* Object::if_contains(std::string_view name) {
  const std::size_t place = place_of(name);
  return place < members_.size() ? &members_[place].value : nullptr;
}
const Value* Object::if_contains(std::string_view name) const {
  const std::size_t place = place_of(name);
  return place < members_.size() ? &members_[place].value : nullptr;
}

const Value& Object::at(std::string_view name) const {
  const Value* value = if_contains(name);
  CHECK(value != nullptr);
  return *value;
}

Value& Object::operator[](std::string_view name) {
  if (Value* value = if_contains(name)) return *value;
  members_.push_back({std::string(name), Value()});
  if (!places_.empty()) {
    places_.emplace(name, members_.size() - 1);
  } else if (members_.size() > kFewMembers) {
    for (std::size_t i = 0; i < members_.size(); ++i) places_.emplace(members_[i].name, i);
  }
  return members_.back().value;
}

void Object::erase(std::string_view name) {
  const std::size_t place = place_of(name);
  if (place == members_.size()) return;
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(place));
  places_.clear();
  for (std::size_t i = 0; i < members_.size() && members_.size() > kFewMembers; ++i) {
    places_.emplace(members_[i].name, i);
  }
}

double Value::as_double() const {
  if (is_int64()) return static_cast<double>(get_int64());
  if (is_uint64()) return static_cast<double>(get_uint64());
  return get_double();
}

namespace {

using boost::json::error_code;
using boost::json::string_view;

// The handler that Boost.JSON's parser calls. Boost's own tree is not used: it finds members by a hash for which a
// client can choose colliding names.
class Builder {
 public:
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = max_object_size;
  static constexpr std::size_t max_key_size = max_object_size;
  static constexpr std::size_t max_string_size = max_object_size;

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return open(Object()); }
  bool on_object_end(std::size_t, error_code&) { return close(); }
  bool on_array_begin(error_code&) { return open(Array()); }
  bool on_array_end(std::size_t, error_code&) { return close(); }
  bool on_key_part(string_view part, std::size_t, error_code&) { return add_part(part); }
  bool on_key(string_view part, std::size_t, error_code&) {
    levels_.back().name = take_text(part);
    return true;
  }
  bool on_string_part(string_view part, std::size_t, error_code&) { return add_part(part); }
  bool on_string(string_view part, std::size_t, error_code&) { return put(take_text(part)); }
  bool on_number_part(string_view part, error_code&) { return add_part(part); }
  bool on_int64(std::int64_t number, string_view, error_code&) { return put_number(number); }
  bool on_uint64(std::uint64_t number, string_view, error_code&) { return put_number(number); }
  // Parses the number's text again: the parser's own value may be off in the last bit.
  bool on_double(double number, string_view part, error_code&) {
    const std::string text = take_text(part);
    std::from_chars(text.data(), text.data() + text.size(), number);
    return put(number);
  }
  bool on_bool(bool flag, error_code&) { return put(flag); }
  bool on_null(error_code&) { return put(nullptr); }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

  Value take() { return std::move(root_); }

 private:
  struct Level {
    Value value;
    std::string name;  // of the next member
  };

  bool add_part(string_view part) {
    text_.append(part.data(), part.size());
    return true;
  }
  std::string take_text(string_view part) {
    add_part(part);
    return std::exchange(text_, {});
  }
  bool open(Value value) {
    levels_.push_back({std::move(value), {}});
    return true;
  }
  bool close() {
    Value value = std::move(levels_.back().value);
    levels_.pop_back();
    return put(std::move(value));
  }
  bool put_number(Value number) {
    text_.clear();
    return put(std::move(number));
  }
  bool put(Value value) {
    if (levels_.empty()) {
      root_ = std::move(value);
    } else if (Object* object = levels_.back().value.if_object()) {
      (*object)[levels_.back().name] = std::move(value);
    } else {
      levels_.back().value.get_array().push_back(std::move(value));
    }
    return true;
  }

  Value root_;
  std::vector<Level> levels_;
  std::string text_;  // of a key, string or number that arrives in parts
};

void append(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::kNull:
      out += "null";
      return;
    case Kind::kBool:
      out += value.get_bool() ? "true" : "false";
      return;
    case Kind::kString:
      return append_json_string(out, value.get_string());
    case Kind::kArray: {
      char before = '[';
      for (const Value& item : value.get_array()) {
        out += std::exchange(before, ',');
        append(out, item);
      }
      out += before == '[' ? "[]" : "]";
      return;
    }
    case Kind::kObject: {
      char before = '{';
      for (const Member& member : value.get_object()) {
        out += std::exchange(before, ',');
        append_json_string(out, member.name);
        out += ':';
        append(out, member.value);
      }
      out += before == '{' ? "{}" : "}";
      return;
    }
    default:
      out += number_text(value);
  }
}

}  // namespace

Result<Value> parse(std::string_view text, std::size_t max_depth) {
  boost::json::parse_options options;
  options.max_depth = max_depth;
  boost::json::basic_parser<Builder> parser(options);
  error_code error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (error == boost::json::error::too_deep) {
    return invalid("", "is nested more than " + std::to_string(max_depth) + " deep");
  }
  if (!error && read < text.size()) error = boost::json::error::extra_data;
  if (error) return invalid("", "is not JSON: " + error.message());
  return parser.handler().take();
}

std::string serialize(const Value& value) {
  std::string out;
  append(out, value);
  return out;
}

std::string number_text(const Value& number) {
  if (number.is_int64()) return std::to_string(number.get_int64());
  if (number.is_uint64()) return std::to_string(number.get_uint64());
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, number.get_double()).ptr;
  std::string out(text, end);
  if (out.find_first_of(".en") == std::string::npos) out += ".0";  // a double stays one when it is read again
  return out;
}

}  // namespace quire::json
