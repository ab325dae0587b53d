// An event of the engine for a stream: a token, or the end. Plain data, 12 bytes.
#pragma once

#include <cstdint>

#include "core/base/ids.h"
#include "core/sample/params.h"

namespace quire::flow {

using sample::Candidate;

enum class Finish : std::uint8_t {
  kNone,       // a token, more may follow
  kStop,       // the token is a stop token: its text is not part of the answer
  kLength,     // the token is the last that max_tokens allows
  kComplete,   // the token is part of the answer, and the grammar allows no more
  kScored,     // no token: max_tokens is 0, and the prompt is scored or pooled
  kCancelled,  // no token: the request was cancelled (disconnect, stop string, stall)
  kLate,       // no token: the request's deadline has passed
  kNoToken,    // no token: rules and grammar forbid every one
  kFailed,     // no token: a fault contained to this request (non-finite logits) or the engine stopped
};

struct TokenEvent {
  TokenId token = -1;  // valid where has_token(finish)
  Finish finish = Finish::kNone;
  float logprob = 0.0f;  // of the token, if the request asks for it
};

inline constexpr bool is_fault(Finish finish) { return finish == Finish::kNoToken || finish == Finish::kFailed; }

inline constexpr bool has_token(Finish finish) {
  return finish == Finish::kNone || finish == Finish::kStop || finish == Finish::kLength || finish == Finish::kComplete;
}

}  // namespace quire::flow
