// Takes the calls of tools out of what a model says, in the form that its template taught it.
//   Hermes    <tool_call>{"name": ..., "arguments": {...}}</tool_call>, as often as wanted; Qwen 2.5 and 3 write the
//   same
//   Llama 3   {"name": ..., "parameters": {...}} as the whole answer, `;` between several, or anywhere behind
//   <|python_tag|>
//   Mistral   [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...], or [TOOL_CALLS]name[ARGS]{...}, as often as wanted
// Shape   what the deltas say does not depend on how the text was cut. A call that is malformed before its arguments
//         begin, or that names no tool of the request, stays content as it was written, white space before it included.
//         White space around calls is dropped.
// Owner   one per answer.
// Thread  one at a time.
// Fails   never: the model's text may be anything. Time is linear in it.
// Source  the models' templates; vLLM's names for the forms.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/chat/answer/answer_parts.h"

namespace quire::api::chat {

// kGeneric: the Hermes form, which plain_conversation.h describes to models whose template teaches none.
enum class CallForm : std::uint8_t { kNone, kHermes, kLlamaJson, kMistral, kGeneric };

class CallParser {
 public:
  virtual ~CallParser() = default;
  virtual void take(char c, Deltas& out) = 0;
  virtual void finish(Deltas& out) = 0;  // the answer ends here
};

// What stands around calls. A tokenizer may have these as special tokens, which must then be shown.
std::span<const std::string_view> marks_of(CallForm form);

// `tools`: the names that may be called; they outlive the parser. kNone: all is content.
std::unique_ptr<CallParser> make_call_parser(CallForm form, std::span<const std::string> tools);

}  // namespace quire::api::chat
