// Reads one tool call that is a JSON object, {"name": ..., "arguments": {...}} or {"name": {...}}, byte by byte.
// Shape   a call is certain once its name is one of `tools` and its arguments either begin as an object behind the name
//         or are complete; they are emitted as they arrive in the first case, else as a whole. "parameters" means the
//         same as "arguments", "tool_name" the same as "name", and arguments may precede the name; a string value is
//         parsed as the JSON that it holds; a call without arguments has {}. Members "id", "type", "index" and
//         "tool_call_id" are ignored; any other member before the call is certain is a fault.
// Owner   one per object. Borrows `tools` and `num_calls`.
// Thread  one at a time.
// Fails   take(): kFault: the object is no call, and nothing was emitted. kBroken: its arguments stopped being JSON
//         after a part of them was emitted.
// Source  the formats of call_format.h whose calls are objects; marked_calls.h handles the text around them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "api/answer/calls/call_format.h"
#include "api/answer/calls/callable_tool.h"
#include "api/answer/parts/answer_parts.h"
#include "api/answer/parts/json_walker.h"

namespace quire::api::chat {

class CallReader {
 public:
  enum class Said {
    kMore,
    kDone,        // the byte ended the object
    kDoneBefore,  // the call was already complete, and the byte does not belong to its object
    kFault,
    kBroken,
  };

  // `num_calls`: the index of this call; incremented once the call is certain.
  CallReader(CallStyle style, std::span<const CallableTool> tools, std::size_t& num_calls)
      : name_is_key_(style == CallStyle::kNameKey), tools_(tools), num_calls_(num_calls), call_(num_calls) {}

  Said take(char c, Deltas& out);  // from the object's { on, until it returns anything but kMore
  bool certain() const { return certain_; }

 private:
  enum class Member { kName, kArguments, kOther };

  Said go_on(char c, std::size_t depth_before, bool begins, Deltas& out);
  bool end_key();
  bool begin_value(char c, Deltas& out);
  bool end_value(Deltas& out);
  void be_certain(Deltas& out);
  void emit(Deltas& out);
  bool known(const std::string& name) const;

  bool name_is_key_;
  std::span<const CallableTool> tools_;
  std::size_t& num_calls_;
  std::size_t call_;
  JsonWalker walker_;
  Member member_ = Member::kOther;
  std::string key_;
  bool in_value_ = false;           // inside a name, or arguments that are an object or a string
  std::string value_;               // its bytes, unless they are emitted as they arrive
  bool streams_arguments_ = false;  // the value is the arguments of a certain call
  std::optional<std::string> name_;
  std::optional<std::string> arguments_;  // complete and not yet emitted
  bool has_arguments_ = false;            // the arguments are complete
  bool certain_ = false;
};

}  // namespace quire::api::chat
