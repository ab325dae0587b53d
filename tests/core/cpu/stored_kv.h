// What a cache of each type gives back for the keys and values it was given: a second implementation, from the text of
// core/cpu/kv_codec.h alone, by other means (double arithmetic and nearbyint).
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "tests/core/cpu/rig.h"

namespace quire::cpu::test {

inline float as_fp8(float x) {
  if (!std::isfinite(x)) return NAN;
  int exponent = 0;
  std::frexp(x, &exponent);  // |x| in [2^(exponent-1), 2^exponent)
  const double step = std::ldexp(1.0, std::max(exponent - 1, -6) - 3);
  return static_cast<float>(std::clamp(std::nearbyint(double{x} / step) * step, -448.0, 448.0));
}

inline std::vector<float> as_int8(std::span<const float> token) {
  float largest = 0;
  for (const float x : token) largest = std::max(largest, std::abs(x));
  const float scale = largest / 127.0f;
  std::vector<float> out;
  for (const float x : token)
    out.push_back(scale == 0 ? 0 : (std::nearbyint(x / scale) + 0.0f) * scale);  // a code has no -0
  return out;
}

// The token's key or value in one head, as it is read later.
inline std::vector<float> as_stored(KvType type, std::span<const float> token) {
  std::vector<float> out(token.begin(), token.end());
  if (type == KvType::kBF16) {
    for (float& x : out) x = f32_of_bf16(bf16_of_f32(x));
  } else if (type == KvType::kFp8) {
    for (float& x : out) x = as_fp8(x);
  } else if (type == KvType::kInt8) {
    out = as_int8(token);
  }
  return out;
}

}  // namespace quire::cpu::test
