// The rules of a request for its tokens (penalties, biases, allowed and forbidden tokens): fixed when it arrives,
// shared by its choices. Plain data.
// Steps   applied to a row's logits before everything of sampler.h, in this order, each in f32:
//           repetition   x > 0 ? x / r : x * r, once, for every token of the prompt or the answer so far
//           frequency    x - f * (occurrences of the token in the answer so far);  presence: x - p if there are any
//           bias         x + b
//           forbidden    x = -inf: tokens not in `allowed`, the last token of a bad word if the answer so far ends with
//                        its other tokens, and the tokens that end the sequence while fewer than min_tokens were
//                        generated
// Owner   shared and immutable; the state that depends on a sequence's tokens is the sequence's (adjustment.h).
// Fails   never here: api/ rejects values outside the ranges below.
// Source  OpenAI's logit_bias and penalties; CTRL (Keskar et al. 2019) for repetition, signs as in transformers; vLLM's
//         names. The order is vLLM's.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"

namespace quire::sample {

struct Bias {
  TokenId token = -1;
  float add = 0.0f;  // -100 .. 100
};

struct Rules {
  float repetition_penalty = 1.0f;                // > 0, finite
  float frequency_penalty = 0.0f;                 // -2 .. 2
  float presence_penalty = 0.0f;                  // -2 .. 2
  std::vector<Bias> bias{};                       // tokens ascending, each once
  std::vector<TokenId> allowed{};                 // ascending; empty: all are
  std::vector<std::vector<TokenId>> bad_words{};  // none of them empty
  std::uint32_t min_tokens = 0;                   // <= max_tokens
};

}  // namespace quire::sample
