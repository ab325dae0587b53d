// Extracts tool calls from a model's text, in the format that its template teaches.
//   Hermes    <tool_call>{"name": ..., "arguments": {...}}</tool_call>, repeatable; also of Qwen 2.5 and 3
//   Llama 3   {"name": ..., "parameters": {...}} as the whole answer, several separated by `;`, or anywhere behind
//             <|python_tag|>
//   Mistral   [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...], or [TOOL_CALLS]name[ARGS]{...}, repeatable
// Shape   the joined deltas do not depend on the cuts of the text. A call that is malformed before its arguments begin,
//         or that names no tool of the request, stays content as written, white space before it included. Malformed
//         text behind the beginning of the arguments is emitted as arguments. White space around calls is dropped.
// Owner   one per answer.
// Thread  one at a time.
// Fails   never: any text is accepted. Time is linear in it.
// Source  the models' templates; the formats are named as in vLLM.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/answer/answer_parts.h"

namespace quire::api::chat {

// kGeneric: the Hermes format for a model whose template teaches none; plain_conversation.h describes it in the prompt.
enum class CallFormat : std::uint8_t { kNone, kHermes, kLlamaJson, kMistral, kGeneric };

class CallParser {
 public:
  virtual ~CallParser() = default;
  virtual void take(char c, Deltas& out) = 0;
  virtual void finish(Deltas& out) = 0;  // the answer has ended
};

// The marks around calls. If the tokenizer has them as special tokens, these must not be skipped in the text.
std::span<const std::string_view> marks_of(CallFormat form);

// `tools`: the names that may be called; borrowed, they outlive the parser. kNone: all text is content.
std::unique_ptr<CallParser> make_call_parser(CallFormat form, std::span<const std::string> tools);

}  // namespace quire::api::chat
