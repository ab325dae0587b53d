// What the model thought of a prompt's tokens: the log probability of each, its rank, and the likeliest ones in its place.
// Shape   P tokens; entry i is of prompt token i + 1, for the first has nothing before it. Of the logits as the model gave
//         them.
// Owner   made by whoever opens the stream; the TokenStream holds it. Its memory is not touched before it is written: a
//         prompt that waits takes none of it.
// Thread  written by the engine before its first push to the stream, read by io after its first pop() from it: the ring's
//         tail pairs them (release, acquire). Never written later: what was scored once is not scored again.
// Fails   nothing. Where the first event is kFailed or kCancelled, the engine got as far as it got.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/flow/token_event.h"

namespace quire::bridge {

class PromptScores {
 public:
  PromptScores(std::size_t prompt_tokens, std::uint32_t candidates)
      : num_top(candidates),
        logprobs_(std::make_unique_for_overwrite<float[]>(prompt_tokens - 1)),
        ranks_(std::make_unique_for_overwrite<std::uint32_t[]>(prompt_tokens - 1)),
        top_(std::make_unique_for_overwrite<std::byte[]>((prompt_tokens - 1) * candidates * sizeof(flow::Candidate))),
        logprobs(logprobs_.get(), prompt_tokens - 1),
        ranks(ranks_.get(), prompt_tokens - 1),
        top(reinterpret_cast<flow::Candidate*>(top_.get()), (prompt_tokens - 1) * candidates) {}
  PromptScores(const PromptScores&) = delete;
  PromptScores& operator=(const PromptScores&) = delete;

  std::span<const flow::Candidate> top_of(std::size_t i) const { return top.subspan(i * num_top, num_top); }

  const std::uint32_t num_top;

 private:
  const std::unique_ptr<float[]> logprobs_;
  const std::unique_ptr<std::uint32_t[]> ranks_;
  const std::unique_ptr<std::byte[]> top_;

 public:
  const std::span<float> logprobs;       // [P-1]
  const std::span<std::uint32_t> ranks;  // [P-1] 1 + how many tokens have a higher logit
  const std::span<flow::Candidate> top;  // [P-1, num_top] likeliest first; token -1 where the vocabulary has no more
};

}  // namespace quire::bridge
