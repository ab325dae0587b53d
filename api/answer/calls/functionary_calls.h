// The CallParser of Functionary 3.2, whose answers go to recipients: all, or a function.
//   all\nLet me see.>>>get_weather\n{"city": "Oslo"}
// Shape   as call_parser.h says. The prompt ends with >>>, so that an answer begins with a recipient.
// Owner   one per answer. Borrows the tools.
// Thread  one at a time.
// Fails   never. Time is linear in the text.
// Source  the chat template of functionary-medium-v3.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "api/answer/calls/call_parser.h"
#include "api/answer/parts/json_walker.h"

namespace quire::api::chat {

class FunctionaryCalls final : public CallParser {
 public:
  explicit FunctionaryCalls(std::span<const CallableTool> tools) : tools_(tools) {}

  void take(char c, Deltas& out) override;
  void finish(Deltas& out) override;

 private:
  enum class State : std::uint8_t { kRecipient, kText, kArguments, kBroken };

  void take_recipient(char c, Deltas& out);
  void take_text(char c, Deltas& out);

  std::span<const CallableTool> tools_;
  std::size_t num_calls_ = 0;
  State state_ = State::kRecipient;
  std::string held_;       // kText: white space and > that may stand before a recipient
  std::string recipient_;  // the text so far
  JsonWalker arguments_;
  bool skips_space_ = false;  // behind a call, and before its arguments
};

}  // namespace quire::api::chat
