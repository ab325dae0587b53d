// Extracts tool calls from a model's text, in the format that its template teaches (call_format.h).
// Shape   the joined deltas do not depend on the cuts of the text. A call that is malformed before its arguments begin,
//         or that names no tool of the request, stays content as written, white space before it included. Malformed
//         text behind the beginning of the arguments is emitted as arguments. White space around calls is dropped.
// Owner   one per answer.
// Thread  one at a time.
// Fails   never: any text is accepted. Time is linear in it.
// Source  the models' templates.
#pragma once

#include <memory>
#include <span>

#include "api/answer/calls/call_format.h"
#include "api/answer/calls/callable_tool.h"
#include "api/answer/parts/answer_parts.h"

namespace quire::api::chat {

class CallParser {
 public:
  virtual ~CallParser() = default;
  virtual void take(char c, Deltas& out) = 0;
  virtual void finish(Deltas& out) = 0;  // the answer has ended
};

// `tools` may be called; borrowed, they outlive the parser. kNone: all text is content. Not of kHarmony, whose calls
// harmony_answer.h reads.
std::unique_ptr<CallParser> make_call_parser(CallFormat format, std::span<const CallableTool> tools);

}  // namespace quire::api::chat
