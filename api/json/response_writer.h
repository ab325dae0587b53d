// The JSON writer of all response bodies: appends to a string, front to back.
// Shape   commas are added automatically; the caller alternates keys and values.
// Owner   borrows the caller's string, which outlives it.
// Fails   never: invalid UTF-8 is written as U+FFFD, a number that is not finite as null.
// Source  RFC 8259; numbers by std::to_chars, the shortest text that reads back the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quire::api {

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);
  JsonWriter& text(std::string_view value);
  JsonWriter& number(std::int64_t value);
  JsonWriter& number(std::uint64_t value);
  JsonWriter& number(double value);
  JsonWriter& number(float value);  // the shortest text that reads back as this float
  JsonWriter& boolean(bool value);
  JsonWriter& null();
  JsonWriter& written(std::string_view json);  // appends finished JSON: a value, or members of an object

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();

  std::string& out_;
  bool comma_ = false;  // a value precedes, so the next one needs a comma
};

}  // namespace quire::api
