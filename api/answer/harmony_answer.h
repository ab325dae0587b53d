// Splits an answer of gpt-oss into reasoning, content and calls: messages, each with a channel and a recipient.
//   <|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather
//   <|constrain|>json<|message|>{"city": "Oslo"}<|call|>
// Shape   the channel analysis is reasoning; a message to functions.NAME, in any channel, is a call of the tool NAME;
//         anything else is content, to another recipient with its header. A blank line separates messages of one kind.
//         Text without a header is content.
// Owner   one per answer. Borrows the tools.
// Thread  one at a time.
// Fails   never. Time is linear in the text.
// Source  OpenAI, harmony response format (2025); the chat template of gpt-oss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/answer/calls/callable_tool.h"
#include "api/answer/parts/answer_parts.h"

namespace quire::api::chat {

class HarmonyAnswer {
 public:
  explicit HarmonyAnswer(std::span<const CallableTool> tools) : tools_(tools) {}

  void take(char c, Deltas& out);
  void finish(Deltas& out);

 private:
  enum class State : std::uint8_t { kHeader, kBody };

  void take_header(char c, Deltas& out);
  void take_body(char c, Deltas& out);
  void begin_body(Deltas& out);
  void end_body(Deltas& out);
  void emit(std::string_view text, Deltas& out);

  std::span<const CallableTool> tools_;
  std::size_t num_calls_ = 0;
  State state_ = State::kHeader;
  std::string header_;
  std::string mark_;  // kBody: the beginning of a mark
  Delta::Kind kind_ = Delta::Kind::kContent;
  bool is_empty_ = true;  // the message, so far
  bool has_reasoning_ = false;
  bool has_content_ = false;
};

}  // namespace quire::api::chat
