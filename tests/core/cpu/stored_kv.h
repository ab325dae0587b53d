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

// Values that share a step, as int4 keeps them.
inline std::vector<float> as_int4(const std::vector<float>& values) {
  const auto bf16_towards = [](double x, bool up) {
    std::uint16_t bits = bf16_of_f32(static_cast<float>(x));
    const double got = double{f32_of_bf16(bits)};
    if (up ? got < x : got > x) bits += (got > 0) == up ? 1 : -1;
    return f32_of_bf16(bits);
  };
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const float lowest = bf16_towards(*low, false);
  const float step = bf16_towards((*high - lowest) / 15.0f, true);
  std::vector<float> out;
  for (const float x : values) {
    const double code = step == 0 ? 0 : std::clamp(std::nearbyint((x - lowest) / step), 0.0f, 15.0f);
    out.push_back(static_cast<float>(code * double{step} + double{lowest}));
  }
  return out;
}

// A group of 16 tokens [16][D] in one head, as int4 keeps it: keys by channel, values by token.
inline std::vector<float> keys_as_int4(const std::vector<float>& group) {
  const std::size_t size = group.size() / 16;
  std::vector<float> out(group.size());
  for (std::size_t d = 0; d < size; ++d) {
    std::vector<float> channel(16);
    for (std::size_t t = 0; t < 16; ++t) channel[t] = group[t * size + d];
    channel = as_int4(channel);
    for (std::size_t t = 0; t < 16; ++t) out[t * size + d] = channel[t];
  }
  return out;
}

// The token's key or value in one head, as it is read later. Not for int4's keys.
inline std::vector<float> as_stored(KvType type, std::span<const float> token) {
  std::vector<float> out(token.begin(), token.end());
  if (type == KvType::kBF16) {
    for (float& x : out) x = f32_of_bf16(bf16_of_f32(x));
  } else if (type == KvType::kFp8) {
    for (float& x : out) x = as_fp8(x);
  } else if (type == KvType::kInt8) {
    out = as_int8(token);
  } else if (type == KvType::kInt4) {
    out = as_int4(out);
  }
  return out;
}

}  // namespace quire::cpu::test
