// Scores of a prompt's tokens: the log probability and rank of each, and the likeliest tokens at its position.
// Shape   N = number of prompt tokens; entry i scores prompt token i + 1, since the first has no token before it. From
//         the model's unmodified logits.
// Owner   allocated by api/sequences; owned by the TokenStream. The memory is not initialised, so that a waiting prompt
//         occupies no physical pages for it.
// Thread  written by the engine before its first push() to the stream, read by io after its first pop() from it: the
//         ring's tail pairs them (release, acquire). Never written later: no token is scored twice.
// Fails   nothing. If the first event is kFailed, kCancelled or kLate, only the first entries may be written.
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
  const std::span<float> logprobs;       // [N-1]
  const std::span<std::uint32_t> ranks;  // [N-1] 1 + number of tokens with a higher logit
  const std::span<flow::Candidate> top;  // [N-1, num_top] likeliest first; token -1: the vocabulary has no more
};

}  // namespace quire::bridge
