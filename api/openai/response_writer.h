// JSON text written front to back into a string: the only JSON writer of the server, and the bodies made with it.
// Shape   commas are put where they belong; keys and values alternate as the caller calls them.
// Owner   a view of the caller's string.
// Fails   never: bytes that are not UTF-8 come out as U+FFFD, numbers that are not finite as null.
// Source  RFC 8259; numbers by std::to_chars, the shortest text that reads back the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quire::api::openai {

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
  JsonWriter& written(std::string_view json);  // a value, or members of an object, as text already

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();

  std::string& out_;
  bool comma_ = false;  // a value stands before this place: the next one needs a comma
};

}  // namespace quire::api::openai
