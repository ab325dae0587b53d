// The ids of an answer's tool calls: distinct for every call, and the same if the same request is repeated.
// Shape   "call_" and 24 letters and digits; nine letters and digits for Mistral, whose templates accept no others.
// Owner   values.
// Thread  any.
// Source  ours: SHA-256 (FIPS 180-4) of prompt, seed, choice and call; the lengths are OpenAI's and Mistral's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "api/answer/call_parser.h"
#include "core/base/ids.h"

namespace quire::api::chat {

class CallIds {
 public:
  CallIds() = default;
  CallIds(CallFormat form, std::span<const TokenId> prompt);

  std::string of(std::int64_t seed, std::size_t choice, std::size_t call) const;

 private:
  CallFormat form_ = CallFormat::kNone;
  std::string digest_;  // of the prompt's token ids
};

}  // namespace quire::api::chat
