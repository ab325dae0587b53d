#include "core/cpu/kv_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "core/base/check.h"
#include "core/base/float_bits.h"

namespace quire::cpu {

using backend::KvType;

namespace {

constexpr std::uint32_t kGroup = backend::kGroupTokens;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

constexpr auto kFp8Values = [] {
  std::array<float, 256> values{};
  for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = f32_of_fp8(static_cast<std::uint8_t>(i));
  return values;
}();

// To the nearest whole number, ties to even, |x| < 2^22: the first addition rounds.
float rounded(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }

float largest_size(const float* x, std::uint32_t count) {
  float largest = 0.0f;
  bool finite = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    const float size = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffu);
    largest = size > largest ? size : largest;
    finite = finite && size < kInfinity;
  }
  return finite ? largest : kNaN;
}

// Codes `stride` apart; returns the scale.
float store_as_int8(const float* x, std::uint32_t count, std::int8_t* codes, std::size_t stride) {
  const float scale = largest_size(x, count) / 127.0f;
  for (std::uint32_t i = 0; i < count; ++i) {
    // No scale: all is zero, or too small to have one. NaN: whatever the code, it reads as NaN.
    const float code = scale > 0.0f ? rounded(std::clamp(x[i] / scale, -127.0f, 127.0f)) : 0.0f;
    codes[i * stride] = static_cast<std::int8_t>(code);
  }
  return scale;
}

// bf16 not above x, and not below it.
std::uint16_t bf16_below(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const bool goes_down = (bits >> 31) != 0 && (bits & 0xffffu) != 0;  // cut off, a negative number goes up
  return static_cast<std::uint16_t>((bits >> 16) + (goes_down ? 1 : 0));
}
std::uint16_t bf16_above(float x) { return static_cast<std::uint16_t>(bf16_below(-x) ^ 0x8000u); }

struct Steps {
  std::uint16_t step = 0;
  std::uint16_t lowest = 0;  // NaN, with step 0: a fault
  float code_of(float x) const {
    const float size = f32_of_bf16(step);
    return size > 0.0f ? std::clamp(rounded((x - f32_of_bf16(lowest)) / size), 0.0f, 15.0f) : 0.0f;
  }
};

// `at(i)` for i < count.
template <typename At>
Steps steps_of(std::uint32_t count, const At& at) {
  float low = kInfinity;
  float high = -kInfinity;
  bool finite = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    const float x = at(i);
    low = x < low ? x : low;
    high = x > high ? x : high;
    finite = finite && x - x == 0.0f;
  }
  const std::uint16_t lowest = bf16_below(low);
  const std::uint16_t step = bf16_above((high - f32_of_bf16(lowest)) / 15.0f);
  if (!finite || !(f32_of_bf16(step) < kInfinity)) return {0, 0x7fc0};
  return {step, lowest};
}

// out[i] of the low codes, out[count + i] of the high ones. The products are exact: 4 bits by 8.
void widen_pairs(const std::uint8_t* codes, std::uint32_t count, std::uint16_t step, std::uint16_t lowest, float* out) {
  const float size = f32_of_bf16(step);
  const float base = f32_of_bf16(lowest);
  for (std::uint32_t i = 0; i < count; ++i) out[i] = static_cast<float>(codes[i] & 15) * size + base;
  for (std::uint32_t i = 0; i < count; ++i) out[count + i] = static_cast<float>(codes[i] >> 4) * size + base;
}

}  // namespace

GroupCodec::GroupCodec(KvType type, std::uint32_t head_dim)
    : type_(type), head_dim_(head_dim), padded_dim_((head_dim + kGroup - 1) / kGroup * kGroup) {
  const std::size_t k = std::size_t{kGroup} * head_dim;
  const std::size_t padded = std::size_t{kGroup} * padded_dim_;
  switch (type) {
    case KvType::kF32:
      v_offset_ = 4 * k;
      bytes_ = 4 * (k + padded);
      break;
    case KvType::kBF16:
      v_offset_ = 2 * k;
      bytes_ = 2 * (k + padded);
      break;
    case KvType::kFp8:
      v_offset_ = k;
      bytes_ = 2 * k;
      break;
    case KvType::kInt8:
      v_offset_ = k;
      scales_offset_ = 2 * k;
      bytes_ = 2 * k + 2 * kGroup * sizeof(float);
      break;
    case KvType::kInt4:
      v_offset_ = k / 2;
      scales_offset_ = k;
      bytes_ = k + 2 * (head_dim + kGroup) * sizeof(std::uint16_t);
      break;
  }
}

void GroupCodec::store(std::byte* group, std::uint32_t lane, const float* k, const float* v) const {
  if (type_ == KvType::kFp8) return store_fp8(group, lane, k, v);
  if (type_ == KvType::kInt8) return store_int8(group, lane, k, v);
  CHECK(is_plain());  // int4 has no tokens of its own
  if (type_ == KvType::kF32) {
    auto* keys = reinterpret_cast<float*>(group) + lane;
    for (std::uint32_t d = 0; d < head_dim_; ++d) keys[d * kGroup] = k[d];
    auto* values = reinterpret_cast<float*>(group + v_offset_) + lane * padded_dim_;
    std::copy_n(v, head_dim_, values);
    std::fill(values + head_dim_, values + padded_dim_, 0.0f);
    return;
  }
  auto* keys = reinterpret_cast<std::uint32_t*>(group) + lane;  // words of (d, d + 1)
  for (std::uint32_t d = 0; d < head_dim_; d += 2) {
    keys[d / 2 * kGroup] = bf16_of_f32(k[d]) | std::uint32_t{bf16_of_f32(k[d + 1])} << 16;
  }
  auto* values = reinterpret_cast<std::uint16_t*>(group + v_offset_) + lane * padded_dim_;
  for (std::uint32_t d = 0; d < head_dim_; ++d) values[d] = bf16_of_f32(v[d]);
  std::fill(values + head_dim_, values + padded_dim_, std::uint16_t{0});
}

void GroupCodec::store_all(std::byte* group, const float* const (&k)[16], const float* const (&v)[16]) const {
  if (type_ != KvType::kInt4) {
    for (std::uint32_t t = 0; t < kGroup; ++t) store(group, t, k[t], v[t]);
    return;
  }
  auto* codes = reinterpret_cast<std::uint8_t*>(group);
  auto* k_steps = reinterpret_cast<std::uint16_t*>(group + scales_offset_);
  auto* v_steps = k_steps + 2 * head_dim_;
  const auto pair = [](const Steps& steps, float low, float high) {
    return static_cast<std::uint8_t>(static_cast<int>(steps.code_of(low)) | static_cast<int>(steps.code_of(high)) << 4);
  };
  for (std::uint32_t d = 0; d < head_dim_; ++d) {
    const Steps steps = steps_of(kGroup, [&](std::uint32_t t) { return k[t][d]; });
    k_steps[d] = steps.step;
    k_steps[head_dim_ + d] = steps.lowest;
    for (std::uint32_t t = 0; t < kGroup / 2; ++t) *codes++ = pair(steps, k[t][d], k[t + kGroup / 2][d]);
  }
  for (std::uint32_t t = 0; t < kGroup; ++t) {
    const Steps steps = steps_of(head_dim_, [&](std::uint32_t d) { return v[t][d]; });
    v_steps[t] = steps.step;
    v_steps[kGroup + t] = steps.lowest;
    for (std::uint32_t d = 0; d < head_dim_ / 2; ++d) *codes++ = pair(steps, v[t][d], v[t][d + head_dim_ / 2]);
  }
}

void GroupCodec::store_fp8(std::byte* group, std::uint32_t lane, const float* k, const float* v) const {
  auto* keys = reinterpret_cast<std::uint8_t*>(group) + lane;
  auto* values = reinterpret_cast<std::uint8_t*>(group + v_offset_) + lane * head_dim_;
  for (std::uint32_t d = 0; d < head_dim_; ++d) keys[d * kGroup] = fp8_of_f32(k[d]);
  for (std::uint32_t d = 0; d < head_dim_; ++d) values[d] = fp8_of_f32(v[d]);
}

void GroupCodec::store_int8(std::byte* group, std::uint32_t lane, const float* k, const float* v) const {
  auto* scales = reinterpret_cast<float*>(group + scales_offset_);
  auto* keys = reinterpret_cast<std::int8_t*>(group) + lane;
  auto* values = reinterpret_cast<std::int8_t*>(group + v_offset_) + lane * head_dim_;
  scales[lane] = store_as_int8(k, head_dim_, keys, kGroup);
  scales[kGroup + lane] = store_as_int8(v, head_dim_, values, 1);
}

void GroupCodec::widen(const std::byte* group, float* k, float* v) const {
  CHECK(!is_plain());
  if (type_ == KvType::kFp8) widen_fp8(group, k, v);
  if (type_ == KvType::kInt8) widen_int8(group, k, v);
  if (type_ == KvType::kInt4) widen_int4(group, k, v);
  for (std::uint32_t t = 0; t < kGroup; ++t) {
    std::fill(v + t * padded_dim_ + head_dim_, v + (t + 1) * padded_dim_, 0.0f);
  }
}

void GroupCodec::widen_fp8(const std::byte* group, float* k, float* v) const {
  const auto* keys = reinterpret_cast<const std::uint8_t*>(group);
  const auto* values = reinterpret_cast<const std::uint8_t*>(group + v_offset_);
  for (std::uint32_t i = 0; i < head_dim_ * kGroup; ++i) k[i] = kFp8Values[keys[i]];
  for (std::uint32_t t = 0; t < kGroup; ++t) {
    for (std::uint32_t d = 0; d < head_dim_; ++d) v[t * padded_dim_ + d] = kFp8Values[values[t * head_dim_ + d]];
  }
}

void GroupCodec::widen_int8(const std::byte* group, float* k, float* v) const {
  const auto* keys = reinterpret_cast<const std::int8_t*>(group);
  const auto* values = reinterpret_cast<const std::int8_t*>(group + v_offset_);
  const auto* scales = reinterpret_cast<const float*>(group + scales_offset_);
  for (std::uint32_t d = 0; d < head_dim_; ++d) {
    for (std::uint32_t t = 0; t < kGroup; ++t) {
      k[d * kGroup + t] = static_cast<float>(keys[d * kGroup + t]) * scales[t];
    }
  }
  for (std::uint32_t t = 0; t < kGroup; ++t) {
    const float scale = scales[kGroup + t];
    for (std::uint32_t d = 0; d < head_dim_; ++d) {
      v[t * padded_dim_ + d] = static_cast<float>(values[t * head_dim_ + d]) * scale;
    }
  }
}

void GroupCodec::widen_int4(const std::byte* group, float* k, float* v) const {
  const auto* codes = reinterpret_cast<const std::uint8_t*>(group);
  const auto* k_steps = reinterpret_cast<const std::uint16_t*>(group + scales_offset_);
  const auto* v_steps = k_steps + 2 * head_dim_;
  for (std::uint32_t d = 0; d < head_dim_; ++d, codes += kGroup / 2) {
    widen_pairs(codes, kGroup / 2, k_steps[d], k_steps[head_dim_ + d], k + d * kGroup);
  }
  for (std::uint32_t t = 0; t < kGroup; ++t, codes += head_dim_ / 2) {
    widen_pairs(codes, head_dim_ / 2, v_steps[t], v_steps[kGroup + t], v + t * padded_dim_);
  }
}

void GroupCodec::poison(std::byte* groups, std::size_t bytes) const {
  if (type_ == KvType::kFp8) {
    std::fill_n(groups, bytes, std::byte{0x7f});
    return;
  }
  // NaN in bf16, and twice in a row in f32: numbers, and the scales of int8 and int4.
  std::fill_n(reinterpret_cast<std::uint16_t*>(groups), bytes / sizeof(std::uint16_t), std::uint16_t{0x7fc0});
}

}  // namespace quire::cpu
