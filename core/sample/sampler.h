// One sampler for every path that emits a token: a function of the logits, the parameters and the token's position alone.
// Steps   greedy (temperature < kGreedyTemperature): the highest logit, ties to the lowest id. Else z = logit / temperature;
//         min-p: keep p >= min_p * p_max; top-k: keep z >= the k-th largest z; top-p: the smallest set of largest values
//         whose mass reaches top_p of what the filters before it kept. Filters are value thresholds: ties stay together.
//         The choice is argmax of z + Gumbel noise (noise.h; key = seed, counter = (token id / 4, position, choice, domain)),
//         ties to the lowest id.
// Mass    exp(z - z_max) as an integer of 2^-40 units, summed in 64 bits: the sum has no order.
// Shape   logits [V]; only [0, V) is read.
// Thread  any; `scratch` is the caller's and is sized V once.
// Fails   a NaN or infinity among the logits: finite = false.
// Source  Gumbel-max trick (Gumbel 1954; Maddison et al. 2014); Philox4x32-10 (Salmon et al. 2011).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/sample/params.h"

namespace quire::sample {

struct Drawn {
  TokenId token = -1;
  bool finite = true;
};

struct Scratch {
  std::vector<float> values;          // [V]
  std::vector<std::uint32_t> indices; // [V]
  explicit Scratch(std::size_t vocab) : values(vocab), indices(vocab) {}
};

Drawn draw(std::span<const float> logits, const Params& params, std::uint32_t position, Scratch& scratch);

}  // namespace quire::sample
