#include "core/cpu/kv_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "core/base/check.h"
#include "core/base/float_bits.h"
#include "core/base/kv_constants.h"

namespace quire::cpu {

using backend::KvType;

namespace {

constexpr std::uint32_t padded(std::uint32_t count, std::uint32_t to) { return (count + to - 1) / to * to; }

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Rounds to the nearest integer, ties to even, |x| < 2^22: the first addition rounds.
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

// Writes codes `stride` apart; returns the scale.
float store_as_int8(const float* x, std::uint32_t count, std::int8_t* codes, std::size_t stride) {
  const float scale = largest_size(x, count) / 127.0f;
  for (std::uint32_t i = 0; i < count; ++i) {
    // scale 0: all values are 0, or too small to have a scale. NaN: the value reads as NaN, whatever the code.
    const float code = scale > 0.0f ? rounded(std::clamp(x[i] / scale, -127.0f, 127.0f)) : 0.0f;
    codes[i * stride] = static_cast<std::int8_t>(code);
  }
  return scale;
}

// The nearest bf16 not above x, and the nearest not below x.
std::uint16_t bf16_below(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const bool goes_down = (bits >> 31) != 0 && (bits & 0xffffu) != 0;  // truncation moves a negative number up
  return static_cast<std::uint16_t>((bits >> 16) + (goes_down ? 1 : 0));
}
std::uint16_t bf16_above(float x) { return static_cast<std::uint16_t>(bf16_below(-x) ^ 0x8000u); }

struct Steps {
  std::uint16_t step = 0;
  std::uint16_t lowest = 0;  // NaN, with step 0: a value was not finite
  int code_of(float x) const {
    const float size = f32_of_bf16(step);
    if (!(size > 0.0f)) return 0;
    return static_cast<int>(std::clamp(rounded((x - f32_of_bf16(lowest)) / size), 0.0f, 15.0f));
  }
};

// Steps of the values at(i), i < count.
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

constexpr std::size_t number_bytes(KvType type) {
  return type == KvType::kF32 ? sizeof(float) : type == KvType::kBF16 ? sizeof(std::uint16_t) : 1;
}

}  // namespace

GroupCodec::GroupCodec(KvType type, std::uint32_t head_dim, std::uint32_t latent)
    : type_(type),
      head_dim_(head_dim),
      latent_(latent),
      padded_dim_(padded(head_dim, type == KvType::kInt4 ? 2 * kGroupTokens : kGroupTokens)) {
  if (latent != 0) {
    CHECK(type != KvType::kInt4);
    padded_dim_ = padded(latent, kGroupTokens) + padded(head_dim - latent, kGroupTokens);
    v_row_bytes_ = number_bytes(type) * padded_dim_;
    k_scale_bytes_ = type == KvType::kInt8 ? kGroupTokens * sizeof(float) : 0;
    bytes_ = kGroupTokens * v_row_bytes_ + 2 * k_scale_bytes_;
    return;
  }
  const std::size_t k = std::size_t{kGroupTokens} * head_dim;
  std::size_t v_scale_bytes = 0;
  switch (type) {
    case KvType::kF32:
      v_offset_ = 4 * k;
      v_row_bytes_ = 4 * padded_dim_;
      break;
    case KvType::kBF16:
      v_offset_ = 2 * k;
      v_row_bytes_ = 2 * padded_dim_;
      break;
    case KvType::kFp8:
      v_offset_ = k;
      v_row_bytes_ = padded_dim_;
      break;
    case KvType::kInt8:
      k_scale_bytes_ = kGroupTokens * sizeof(float);
      v_offset_ = k + k_scale_bytes_;
      v_row_bytes_ = padded_dim_;
      v_scale_bytes = kGroupTokens * sizeof(float);
      break;
    case KvType::kInt4:
      k_scale_bytes_ = head_dim * sizeof(Steps);
      v_offset_ = k / 2 + k_scale_bytes_;
      v_row_bytes_ = padded_dim_ / 2;
      v_scale_bytes = kGroupTokens * sizeof(Steps);
      break;
  }
  bytes_ = v_scales_offset() + v_scale_bytes;
}

void GroupCodec::store(std::byte* group, std::uint32_t lane, const float* k, const float* v) const {
  if (latent_ != 0) return store_latent(group, lane, k);
  if (type_ == KvType::kFp8) return store_fp8(group, lane, k, v);
  if (type_ == KvType::kInt8) return store_int8(group, lane, k, v);
  CHECK(type_ != KvType::kInt4);  // int4 has no codes of a single token
  if (type_ == KvType::kF32) {
    auto* keys = reinterpret_cast<float*>(group) + lane;
    for (std::uint32_t d = 0; d < head_dim_; ++d) keys[d * kGroupTokens] = k[d];
    auto* values = reinterpret_cast<float*>(group + v_offset_) + lane * padded_dim_;
    std::copy_n(v, head_dim_, values);
    std::fill(values + head_dim_, values + padded_dim_, 0.0f);
    return;
  }
  auto* keys = reinterpret_cast<std::uint32_t*>(group) + lane;  // words of (d, d + 1)
  for (std::uint32_t d = 0; d < head_dim_; d += 2) {
    keys[d / 2 * kGroupTokens] = bf16_of_f32(k[d]) | std::uint32_t{bf16_of_f32(k[d + 1])} << 16;
  }
  auto* values = reinterpret_cast<std::uint16_t*>(group + v_offset_) + lane * padded_dim_;
  for (std::uint32_t d = 0; d < head_dim_; ++d) values[d] = bf16_of_f32(v[d]);
  std::fill(values + head_dim_, values + padded_dim_, std::uint16_t{0});
}

void GroupCodec::store_all(std::byte* group, const float* const (&k)[16], const float* const (&v)[16]) const {
  if (type_ != KvType::kInt4) {
    for (std::uint32_t t = 0; t < kGroupTokens; ++t) store(group, t, k[t], v[t]);
    return;
  }
  auto* keys = reinterpret_cast<std::uint8_t*>(group);
  auto* k_steps = reinterpret_cast<Steps*>(group + k_scales_offset());
  for (std::uint32_t d = 0; d < head_dim_; ++d) {
    k_steps[d] = steps_of(kGroupTokens, [&](std::uint32_t t) { return k[t][d]; });
  }
  for (std::uint32_t d = 0; d < head_dim_; d += 2) {
    for (std::uint32_t t = 0; t < kGroupTokens; ++t) {
      *keys++ = static_cast<std::uint8_t>(k_steps[d].code_of(k[t][d]) | k_steps[d + 1].code_of(k[t][d + 1]) << 4);
    }
  }
  auto* values = reinterpret_cast<std::uint8_t*>(group + v_offset_);
  auto* v_steps = reinterpret_cast<Steps*>(group + v_scales_offset());
  for (std::uint32_t t = 0; t < kGroupTokens; ++t) {
    v_steps[t] = steps_of(head_dim_, [&](std::uint32_t d) { return v[t][d]; });
    const auto code = [&](std::uint32_t d) { return d < head_dim_ ? v_steps[t].code_of(v[t][d]) : 0; };
    for (std::uint32_t d = 0; d < padded_dim_; d += 2 * kGroupTokens) {
      for (std::uint32_t i = d; i < d + kGroupTokens; ++i)
        *values++ = static_cast<std::uint8_t>(code(i) | code(i + kGroupTokens) << 4);
    }
  }
}

void GroupCodec::store_fp8(std::byte* group, std::uint32_t lane, const float* k, const float* v) const {
  auto* keys = reinterpret_cast<std::uint8_t*>(group) + lane;
  auto* values = reinterpret_cast<std::uint8_t*>(group + v_offset_) + lane * v_row_bytes_;
  for (std::uint32_t d = 0; d < head_dim_; ++d) keys[d * kGroupTokens] = fp8_of_f32(k[d]);
  for (std::uint32_t d = 0; d < head_dim_; ++d) values[d] = fp8_of_f32(v[d]);
  std::fill(values + head_dim_, values + padded_dim_, std::uint8_t{0});
}

void GroupCodec::store_int8(std::byte* group, std::uint32_t lane, const float* k, const float* v) const {
  auto* keys = reinterpret_cast<std::int8_t*>(group) + lane;
  auto* values = reinterpret_cast<std::int8_t*>(group + v_offset_) + lane * v_row_bytes_;
  reinterpret_cast<float*>(group + k_scales_offset())[lane] = store_as_int8(k, head_dim_, keys, kGroupTokens);
  reinterpret_cast<float*>(group + v_scales_offset())[lane] = store_as_int8(v, head_dim_, values, 1);
  std::fill(values + head_dim_, values + padded_dim_, std::int8_t{0});
}

void GroupCodec::store_latent(std::byte* group, std::uint32_t lane, const float* k) const {
  const std::uint32_t rest = head_dim_ - latent_;
  std::byte* const row = group + lane * v_row_bytes_;
  std::fill_n(row, v_row_bytes_, std::byte{0});
  const std::size_t rest_at = padded(latent_, kGroupTokens);
  const auto store_part = [&](const float* x, std::uint32_t count, std::size_t at, std::uint32_t part) {
    switch (type_) {
      case KvType::kF32:
        std::copy_n(x, count, reinterpret_cast<float*>(row) + at);
        return;
      case KvType::kBF16:
        std::transform(x, x + count, reinterpret_cast<std::uint16_t*>(row) + at, bf16_of_f32);
        return;
      case KvType::kFp8:
        std::transform(x, x + count, reinterpret_cast<std::uint8_t*>(row) + at, fp8_of_f32);
        return;
      default:
        latent_scales(group)[part * kGroupTokens + lane] =
            store_as_int8(x, count, reinterpret_cast<std::int8_t*>(row) + at, 1);
    }
  };
  store_part(k + rest, latent_, 0, 0);
  store_part(k, rest, rest_at, 1);
}

KvType GroupCodec::panel_type() const { return type_ == KvType::kBF16 ? KvType::kBF16 : KvType::kF32; }

std::size_t GroupCodec::panel_bytes() const { return number_bytes(panel_type()) * kGroupTokens * head_dim_; }

// The rest of K comes first, as in a query.
void GroupCodec::panel(const Kernels& kernels, const std::byte* group, std::byte* panel) const {
  const std::uint32_t rest = head_dim_ - latent_;
  const std::size_t number = number_bytes(type_);
  TurnArgs args;
  args.row_bytes = v_row_bytes_;
  const auto turn = [&](std::size_t from, std::uint32_t count, std::uint32_t part, std::size_t to) {
    args.rows = group + from * number;
    args.count = count;
    args.scales = latent_scales(group) + part * kGroupTokens;
    args.panel = reinterpret_cast<float*>(panel + to * number_bytes(panel_type()) * kGroupTokens);
    kernels.turn[static_cast<int>(type_)](args);
  };
  turn(padded(latent_, kGroupTokens), rest, 1, 0);
  turn(0, latent_, 0, rest);
}

void GroupCodec::copy(const std::byte* from, std::uint32_t from_lane, std::byte* to, std::uint32_t to_lane) const {
  CHECK(type_ != KvType::kInt4);
  if (latent_ != 0) {
    std::memmove(to + to_lane * v_row_bytes_, from + from_lane * v_row_bytes_, v_row_bytes_);
    if (k_scale_bytes_ == 0) return;
    for (const std::uint32_t part : {0u, 1u}) {
      latent_scales(to)[part * kGroupTokens + to_lane] = latent_scales(from)[part * kGroupTokens + from_lane];
    }
    return;
  }
  const std::size_t word = type_ == KvType::kF32 || type_ == KvType::kBF16 ? 4 : 1;  // of K, bf16: two numbers
  const std::size_t k_bytes = v_offset_ - k_scale_bytes_;
  for (std::size_t at = 0; at < k_bytes; at += kGroupTokens * word) {
    std::memcpy(to + at + to_lane * word, from + at + from_lane * word, word);
  }
  std::memmove(to + v_offset_ + to_lane * v_row_bytes_, from + v_offset_ + from_lane * v_row_bytes_, v_row_bytes_);
  if (k_scale_bytes_ == 0) return;
  for (const std::size_t scales : {k_scales_offset(), v_scales_offset()}) {
    std::memcpy(to + scales + to_lane * sizeof(float), from + scales + from_lane * sizeof(float), sizeof(float));
  }
}

void GroupCodec::poison(std::byte* groups, std::size_t bytes) const {
  if (type_ == KvType::kFp8) {
    std::fill_n(groups, bytes, std::byte{0x7f});
    return;
  }
  // NaN in bf16, and in f32 as two of these: values, and the scales of int8 and int4.
  std::fill_n(reinterpret_cast<std::uint16_t*>(groups), bytes / sizeof(std::uint16_t), std::uint16_t{0x7fc0});
}

}  // namespace quire::cpu
