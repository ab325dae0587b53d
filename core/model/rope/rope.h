// cos and sin tables for every position, rounded where transformers rounds: inverse frequencies, angles and results are
// f32. Functions that transformers takes from libm come from rope_math.h.
// Shape   cosines, sines [positions, r/2], r the dimensions of a head that turn, multiplied by the attention factor.
// Thread  any; pure.
// Source  transformers 5.24 modeling_rope_utils.py (the choice of f32 or double); RoFormer (Su et al. 2021); linear:
//         position interpolation (Chen et al. 2023); llama3: Meta's frequency bands; YaRN (Peng et al. 2023);
//         LongRoPE (Ding et al. 2024).
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/rope/rope_spec.h"

namespace quire::model {

inline constexpr std::uint32_t kMaxRopePositions = 1u << 22;  // the range in which sin_cos() reduces exactly

struct RopeFrequencies {
  std::vector<float> inverse;     // [r/2] radians per position
  float attention_factor = 1.0f;  // multiplies cos and sin
};

// head_dim: D, of which rope.rotary_dims() turn.
RopeFrequencies rope_frequencies(const RopeConfig& rope, std::uint32_t head_dim);

struct RopeAngles {
  std::vector<float> cosines;  // [positions, r/2]
  std::vector<float> sines;
};

// positions <= kMaxRopePositions.
RopeAngles rope_angles(const RopeConfig& rope, std::uint32_t head_dim, std::uint32_t positions);

}  // namespace quire::model
