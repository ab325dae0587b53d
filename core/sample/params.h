// The sampling parameters of one sequence, and what sampling returns. Plain data; Params are the same bytes on host and
// device.
// Shape   one per sequence and request; temperatures and masses are f32, counts are int32.
// Owner   copied by value.
// Fails   never here: api/ rejects values outside the ranges below (and NaN) before a Params is made.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/ids.h"
#include "core/sample/accept.h"

namespace quire::sample {

struct Params {
  float temperature = 1.0f;        // >= 0, finite; below kGreedyTemperature: greedy
  float top_p = 1.0f;              // (0, 1]; 1 keeps all
  float min_p = 0.0f;              // [0, 1]; 0 keeps all
  float typical_p = 1.0f;          // (0, 1]; 1 keeps all
  std::int32_t top_k = 0;          // 0 keeps all
  std::uint64_t seed = 0;          // Philox key
  std::uint32_t choice_index = 0;  // i of n
  bool logprob = false;            // return the sampled token's log probability
  std::uint32_t num_top = 0;       // likeliest tokens returned with their log probabilities; <= kMaxTop
  Accept accept = Accept::kMatch;  // the rule by which its draft tokens are accepted
};

// A token and its log probability, from the logits as the model gave them, before temperature and filters.
struct Candidate {
  TokenId token = -1;
  float logprob = 0.0f;
};

// The result of one logits row: a sampled token, or the score of a given one.
struct Choice {
  // -1: a draft node that verification did not reach; for a lookahead node the token sampled from its row alone.
  TokenId token = -1;
  bool finite = true;    // false: the row's logits had a NaN or infinity. The token is invalid.
  float logprob = 0.0f;  // of the token, if requested
  // [num_top] if requested, likeliest first, ties by lowest id; owned by the device until its next step.
  std::span<const Candidate> top{};
  std::uint32_t rank = 0;  // of a given token: 1 + number of tokens with a higher logit
};

inline constexpr std::uint32_t kMaxTop = 256;

inline constexpr float kGreedyTemperature = 1e-5f;

// True if draft tokens are accepted by ratio or block: then a draft is used whole or not at all.
inline bool accepts_by_rejection(const Params& params) {
  return params.accept != Accept::kMatch && params.temperature >= kGreedyTemperature;
}

}  // namespace quire::sample
