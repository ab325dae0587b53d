// cos and sin tables for every position, rounded where transformers rounds: inverse frequencies, angles and results are
// f32. What it takes from libm comes from rope_math.h.
// Shape   cosines, sines [positions, D/2], the attention factor multiplied in.
// Thread  any; pure.
// Source  transformers 5.23 modeling_rope_utils.py (what is f32 there and what is double); RoFormer (Su et al. 2021);
//         linear: position interpolation (Chen et al. 2023); llama3: Meta's frequency bands; YaRN (Peng et al. 2023).
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/config.h"

namespace quire::model {

inline constexpr std::uint32_t kMaxRopePositions = 1u << 22;  // as far as sin_cos() reduces exactly

struct RopeFrequencies {
  std::vector<float> inverse;     // [D/2] radians per position
  float attention_factor = 1.0f;  // multiplies cos and sin
};

RopeFrequencies rope_frequencies(const RopeConfig& rope, std::uint32_t head_dim);

struct RopeAngles {
  std::vector<float> cosines;  // [positions, D/2]
  std::vector<float> sines;
};

// positions <= kMaxRopePositions.
RopeAngles rope_angles(const RopeConfig& rope, std::uint32_t head_dim, std::uint32_t positions);

}  // namespace quire::model
