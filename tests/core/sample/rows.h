// Logit rows for the sampler's tests, made from fixed seeds.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace quire::sample {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Sum of four uniforms, so that the row does not depend on a standard library's normal distribution.
inline std::vector<float> bell_row(std::size_t vocab, float scale, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> row(vocab);
  for (float& x : row) {
    float sum = -2.0f;
    for (int i = 0; i < 4; ++i) sum += static_cast<float>(random() >> 8) * 0x1p-24f;
    x = sum * scale;
  }
  return row;
}

// The same, on a grid: many ties.
inline std::vector<float> grid_row(std::size_t vocab, float scale, float grid, std::uint32_t seed) {
  std::vector<float> row = bell_row(vocab, scale, seed);
  for (float& x : row) x = std::nearbyint(x / grid) * grid;
  return row;
}

}  // namespace quire::sample
