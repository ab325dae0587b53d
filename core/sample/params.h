// How one sequence's next token is drawn. Plain data, the same bytes on host and device.
// Shape   one per sequence and request; temperatures and masses are f32, counts are int32.
// Owner   copied by value.
// Fails   never here: api/ refuses what is outside the ranges below (and NaN) before a Params is made.
#pragma once

#include <cstdint>

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
  bool logprob = false;            // say the chosen token's log probability
  std::uint32_t num_top = 0;       // so many likeliest tokens with their log probabilities come back; <= kMaxTop
  Accept accept = Accept::kMatch;  // how guesses at it are taken
};

// A token and its log probability: of the logits as the model gave them, before temperature and filters.
struct Candidate {
  TokenId token = -1;
  float logprob = 0.0f;
};

inline constexpr std::uint32_t kMaxTop = 256;

inline constexpr float kGreedyTemperature = 1e-5f;

// Whether its tokens come of ratio or block: then a draft is used whole or not at all.
inline bool accepts_by_law(const Params& params) {
  return params.accept != Accept::kMatch && params.temperature >= kGreedyTemperature;
}

}  // namespace quire::sample
