// What one speaking sequence said in a step. Plain data; what the device sends back instead of logits.
// Owner   the runner; `top` is valid until its next submit().
#pragma once

#include <span>

#include "core/base/ids.h"
#include "core/sample/params.h"

namespace quire::flow {

struct StepChoice {
  SeqId seq;
  TokenId token = -1;
  bool finite = true;    // false: the row's logits held a NaN or +inf; the token means nothing and the request must end
                         // with an error
  float logprob = 0.0f;  // of the token, where asked for
  std::span<const sample::Candidate> top{};  // [num_top] likeliest first, ties by lowest id; fewer where V is smaller
};

}  // namespace quire::flow
