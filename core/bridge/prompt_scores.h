// What the model thought of a prompt's tokens: the log probability of each, its rank, and the likeliest ones in its place.
// Shape   P tokens; entry i is of prompt token i + 1, for the first has nothing before it. Of the logits as the model gave
//         them.
// Owner   made by whoever opens the stream, in full; the TokenStream holds it.
// Thread  written by the engine before its first push to the stream, read by io after its first pop() from it: the ring's
//         tail pairs them (release, acquire). Never written later: what was scored once is not scored again.
// Fails   nothing. Where the first event is kFailed or kCancelled, the engine got as far as it got.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/flow/token_event.h"

namespace quire::bridge {

struct PromptScores {
  PromptScores(std::size_t prompt_tokens, std::uint32_t candidates)
      : logprobs(prompt_tokens - 1),
        ranks(prompt_tokens - 1),
        top((prompt_tokens - 1) * candidates),
        num_top(candidates) {}

  std::span<const flow::Candidate> top_of(std::size_t i) const { return std::span(top).subspan(i * num_top, num_top); }

  std::vector<float> logprobs;       // [P-1]
  std::vector<std::uint32_t> ranks;  // [P-1] 1 + how many tokens have a higher logit
  std::vector<flow::Candidate> top;  // [P-1, num_top] likeliest first; token -1 where the vocabulary has no more
  const std::uint32_t num_top;
};

}  // namespace quire::bridge
