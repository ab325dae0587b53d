// The ids of an answer's tool calls: distinct for every call, and the same if the same request is repeated.
// Shape   "call_" and 24 letters and digits; nine letters and digits for Mistral, whose templates accept no others;
//         functions.NAME:NUMBER for Kimi, whose templates show it to the model, numbered through the conversation.
// Owner   values.
// Thread  any.
// Source  ours: SHA-256 (FIPS 180-4) of prompt, seed, choice and call; shapes of OpenAI, Mistral, Moonshot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/answer/calls/call_format.h"
#include "core/base/ids.h"

namespace quire::api::chat {

class CallIds {
 public:
  CallIds() = default;
  // `num_before`: calls in the conversation so far.
  CallIds(CallFormat form, std::span<const TokenId> prompt, std::size_t num_before = 0);

  std::string of(std::int64_t seed, std::size_t choice, std::size_t call, std::string_view name) const;

 private:
  CallFormat form_ = CallFormat::kNone;
  std::size_t num_before_ = 0;
  std::string digest_;  // of the prompt's token ids
};

}  // namespace quire::api::chat
