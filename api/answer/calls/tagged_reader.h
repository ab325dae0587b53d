// Turns parameters between marks into JSON byte by byte.
//   <parameter=city>\nOslo\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>
//     →  {"city": "Oslo", "days": 2}
// Shape   a value is a string if its parameter may be nothing else; it is emitted as it arrives. Any other value is
//         emitted once it is complete: as JSON of a type that the parameter may have, else as a string. Marks do not
//         count inside the strings of a JSON list or object. A value also ends where another parameter of the tool
//         begins that the call does not have yet, and at the end of the call if no mark ends it. If key_end of the
//         syntax ends with a line break, one at each end of a value belongs to the marks. A parameter that comes again
//         is dropped, as is text between parameters.
// Owner   one per call; borrows `syntax` and `tool`.
// Thread  one at a time.
// Fails   take(): kFault for text before the first parameter; any later text is taken.
// Source  ours; vLLM and SGLang decide by the schema as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "api/answer/calls/arguments_reader.h"
#include "api/answer/parts/json_walker.h"

namespace quire::api::chat {

class TaggedReader final : public ArgumentsReader {
 public:
  TaggedReader(const CallSyntax& syntax, const CallableTool& tool);

  ArgumentsState take(char c, std::string& json) override;
  void finish(std::string& json) override;

 private:
  enum class State : std::uint8_t { kBetween, kKey, kValueBegin, kValue };

  ArgumentsState take_between(char c, std::string& json);
  ArgumentsState close(ArgumentsState state, std::string& json);
  void begin_key(std::string_view key, std::string& json);
  void begin_value(std::string& json);
  void take_value(char c, std::string& json);
  std::optional<std::string_view> next_key() const;
  bool may_be_mark(std::string_view text) const;
  void add(char c, std::string& json);
  void end_value(std::string& json);

  const CallSyntax& syntax_;
  const CallableTool& tool_;
  const std::string_view key_begin_;
  const std::string_view key_end_;
  const std::string_view value_end_;
  const std::string_view call_end_;
  const bool on_lines_;
  State state_ = State::kBetween;
  std::string text_;  // a mark that has begun, a key, or a value that is not emitted yet
  std::string mark_;  // of a value: what may be a mark, and all behind the mark that ends calls
  std::set<std::string, std::less<>> keys_;
  std::string key_;
  std::uint8_t types_ = kAnyType;
  bool has_begun_ = false;                // { is emitted
  bool is_dropped_ = false;               // the parameter came before
  bool is_blank_ = false;                 // the value has no more than white space
  bool is_at_begin_ = false;              // of the value
  std::optional<JsonWalker> json_value_;  // of a value that is a list or an object so far
  bool holds_break_ = false;              // a line break that may belong to the end mark
};

}  // namespace quire::api::chat
