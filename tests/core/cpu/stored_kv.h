// What a cache of each type gives back for the keys and values it was given, and what a group of its memory means: a
// second implementation, from the text of core/cpu/kv_codec.h alone, by other means (double arithmetic and nearbyint).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
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

inline float value_of_fp8(std::uint8_t code) {
  const int exponent = code >> 3 & 15;
  const int fraction = code & 7;
  const double size = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return static_cast<float>(std::copysign((code & 127) == 127 ? NAN : size, (code & 128) != 0 ? -1 : 1));
}
inline float value_of_int4(int code, const std::byte* steps) {
  std::uint16_t pair[2];
  std::memcpy(pair, steps, sizeof(pair));
  return static_cast<float>(code * double{f32_of_bf16(pair[0])} + double{f32_of_bf16(pair[1])});
}

// Keys and values [16][D] of a group in fp8, int8 or int4.
struct GroupValues {
  std::vector<float> k, v;
};
inline GroupValues values_of(KvType type, std::uint32_t head_dim, const std::byte* group) {
  const std::uint32_t bits = type == KvType::kInt4 ? 4 : 8;
  const std::uint32_t width = (head_dim + 128 / bits - 1) / (128 / bits) * (128 / bits);
  const std::byte* k_scales = group + 2 * bits * head_dim;
  const std::byte* v = k_scales + (type == KvType::kFp8 ? 0 : type == KvType::kInt8 ? 64 : 4 * head_dim);
  const std::byte* v_scales = v + 2 * bits * width;
  const auto value = [&](const std::byte* byte, bool high, const std::byte* scale) {
    const auto code = static_cast<std::uint8_t>(*byte);
    if (type == KvType::kFp8) return value_of_fp8(code);
    if (type == KvType::kInt4) return value_of_int4(high ? code >> 4 : code & 15, scale);
    float factor;
    std::memcpy(&factor, scale, sizeof(factor));
    return static_cast<float>(static_cast<std::int8_t>(code)) * factor;
  };
  GroupValues out;
  for (std::uint32_t t = 0; t < 16; ++t) {
    for (std::uint32_t d = 0; d < head_dim; ++d) {
      if (type == KvType::kInt4) {
        out.k.push_back(value(group + d / 2 * 16 + t, d % 2 != 0, k_scales + 4 * d));
        out.v.push_back(value(v + t * width / 2 + d / 32 * 16 + d % 16, d / 16 % 2 != 0, v_scales + 4 * t));
      } else {
        out.k.push_back(value(group + d * 16 + t, false, k_scales + 4 * t));
        out.v.push_back(value(v + t * width + d, false, v_scales + 4 * t));
      }
    }
  }
  return out;
}

}  // namespace quire::cpu::test
