// Result of one logits row in a step: the sampled next token of a sequence, or the score of a given prompt token. Plain
// data, which the device returns instead of logits.
// Owner   the runner; `top` is valid until its next submit().
#pragma once

#include <cstdint>
#include <span>

#include "core/base/ids.h"
#include "core/sample/params.h"

namespace quire::flow {

struct StepChoice {
  SeqId seq;
  TokenId token = -1;    // of a draft's node that was not visited: -1, or of a lookahead node what its row alone says
  bool finite = true;    // false: the row's logits held a NaN or +inf; the token means nothing and the request must end
                         // with an error
  float logprob = 0.0f;  // of the token, where asked for
  std::span<const sample::Candidate> top{};  // [num_top] likeliest first, ties by lowest id; fewer where V is smaller
  std::uint32_t rank = 0;                    // of a given token: 1 + how many have a higher logit
};

}  // namespace quire::flow
