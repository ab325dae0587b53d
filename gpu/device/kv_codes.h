// Codes of K and V by cache type, as in core/cpu/kv_codec.h, one IEEE operation a line, so that a cache reads back as
// the CPU's does. Their layout: layout.h.
// Shape   arguments are a group of 16 positions, and the index of a code in its K or V.
// Thread  host and device; pure but for the stores.
// Source  conversions: core/base/float_bits.h; int8 and int4: core/cpu/kv_codec.h.
#pragma once

#include "core/base/float_bits.h"
#include "gpu/device/layout.h"
#include "gpu/device/simt.h"

namespace quire::gpu {

// K and V of one layer.
struct KvView {
  std::byte* numbers = nullptr;
  KvLayout layout;
  // int4: the residual groups (newest, unfinished ones) in f32, [kv head][16 positions] of k | v, `open_stride` numbers
  // apart; and the same of the current layer as the step found them.
  float* open = nullptr;
  float* found = nullptr;
  std::size_t open_stride = 0;

  QUIRE_DEVICE std::byte* group(std::uint32_t head, std::uint32_t slot) const {
    return numbers + layout.group_at(head, slot);
  }
  QUIRE_DEVICE float* open_row(std::uint32_t residual_group, std::uint32_t head, std::uint32_t position) const {
    return open + row_at(residual_group, head, position);
  }
  QUIRE_DEVICE float* found_row(std::uint32_t residual_group, std::uint32_t head, std::uint32_t position) const {
    return found + row_at(residual_group, head, position);
  }

 private:
  QUIRE_DEVICE std::size_t row_at(std::uint32_t residual_group, std::uint32_t head, std::uint32_t position) const {
    const std::size_t row = std::size_t{head} * KvLayout::kGroup + position % KvLayout::kGroup;
    return residual_group * open_stride + row * 2 * layout.head_dim;
  }
};

QUIRE_DEVICE float kv_infinity() { return f32_of_bits(0x7f800000u); }
QUIRE_DEVICE float kv_nan() { return f32_of_bits(0x7fc00000u); }

// Rounds to the nearest integer, ties to even, |x| < 2^22: the first addition rounds.
QUIRE_DEVICE float rounded(float x) { return (x + 12582912.0f) - 12582912.0f; }
QUIRE_DEVICE float clamped(float x, float low, float high) { return x < low ? low : high < x ? high : x; }

// scale 0: all values are 0, or too small to have a scale. NaN: the value reads as NaN, whatever the code.
QUIRE_DEVICE std::int8_t int8_code(float x, float scale) {
  return static_cast<std::int8_t>(scale > 0.0f ? rounded(clamped(quotient(x, scale), -127.0f, 127.0f)) : 0.0f);
}

// int4: the step and lowest value that the positions of a K channel share, or the channels of a V position.
struct Steps {
  std::uint16_t step = 0;
  std::uint16_t lowest = 0;  // NaN, with step 0: a value was not finite

  QUIRE_DEVICE std::uint32_t code_of(float x) const {
    const float size = f32_of_bf16(step);
    if (!(size > 0.0f)) return 0;
    return static_cast<std::uint32_t>(clamped(rounded(quotient(x - f32_of_bf16(lowest), size)), 0.0f, 15.0f));
  }
};

// Lowest and highest of some numbers, and whether all are finite. Their order matters only to the sign of a zero.
struct Extent {
  float low = kv_infinity();
  float high = -kv_infinity();
  bool finite = true;

  QUIRE_DEVICE void take(float x) {
    low = x < low ? x : low;
    high = x > high ? x : high;
    finite = finite && x - x == 0.0f;
  }
};

// The nearest bf16 not above x, and the nearest not below x.
QUIRE_DEVICE std::uint16_t bf16_below(float x) {
  const std::uint32_t bits = bits_of(x);
  const bool goes_down = (bits >> 31) != 0 && (bits & 0xffffu) != 0;  // truncation moves a negative number up
  return static_cast<std::uint16_t>((bits >> 16) + (goes_down ? 1 : 0));
}
QUIRE_DEVICE std::uint16_t bf16_above(float x) { return static_cast<std::uint16_t>(bf16_below(-x) ^ 0x8000u); }

QUIRE_DEVICE Steps steps_of(const Extent& extent) {
  const std::uint16_t lowest = bf16_below(extent.low);
  const std::uint16_t step = bf16_above(quotient(extent.high - f32_of_bf16(lowest), 15.0f));
  if (!extent.finite || !(f32_of_bf16(step) < kv_infinity())) return {0, 0x7fc0};
  return {step, lowest};
}

constexpr unsigned int4_shift(std::uint32_t place) { return place % 8 / 2 * 4 + place % 2 * 16; }

// A code as a number, without its scale.
QUIRE_DEVICE float kv_code_at(backend::KvType type, const std::byte* codes, std::uint32_t place) {
  switch (type) {
    case backend::KvType::kF32:
      return reinterpret_cast<const float*>(codes)[place];
    case backend::KvType::kBF16:
      return f32_of_bf16(reinterpret_cast<const std::uint16_t*>(codes)[place]);
    case backend::KvType::kFp8:
      return f32_of_fp8(reinterpret_cast<const std::uint8_t*>(codes)[place]);
    case backend::KvType::kInt8:
      return static_cast<float>(reinterpret_cast<const std::int8_t*>(codes)[place]);
    default:
      return static_cast<float>(reinterpret_cast<const std::uint32_t*>(codes)[place / 8] >> int4_shift(place) & 15u);
  }
}

QUIRE_DEVICE float int8_scale_at(const std::byte* scales, std::uint32_t slot) {
  return reinterpret_cast<const float*>(scales)[slot % KvLayout::kGroup];
}
// `scales`: `count` steps, then `count` lowests.
QUIRE_DEVICE Steps int4_steps_at(const std::byte* scales, std::uint32_t count, std::uint32_t index) {
  const auto* steps = reinterpret_cast<const std::uint16_t*>(scales);
  return {steps[index], steps[count + index]};
}

// Values as they are stored, in f32.
QUIRE_DEVICE float stored_k(const KvLayout& layout, const std::byte* group, std::uint32_t slot, std::uint32_t d) {
  const float code = kv_code_at(layout.type, group, layout.k_place(slot, d));
  if (layout.type == backend::KvType::kInt8) return code * int8_scale_at(group + layout.k_scales_at(), slot);
  if (layout.type != backend::KvType::kInt4) return code;
  const Steps steps = int4_steps_at(group + layout.k_scales_at(), layout.width(), d);
  return fma(code, f32_of_bf16(steps.step), f32_of_bf16(steps.lowest));
}
QUIRE_DEVICE float stored_v(const KvLayout& layout, const std::byte* group, std::uint32_t slot, std::uint32_t d) {
  const float code = kv_code_at(layout.type, group + layout.code_bytes(), layout.v_place(slot, d));
  if (layout.type == backend::KvType::kInt8) return code * int8_scale_at(group + layout.v_scales_at(), slot);
  if (layout.type != backend::KvType::kInt4) return code;
  const Steps steps = int4_steps_at(group + layout.v_scales_at(), KvLayout::kGroup, slot % KvLayout::kGroup);
  return fma(code, f32_of_bf16(steps.step), f32_of_bf16(steps.lowest));
}

// Not for int4, whose codes are stored a word at a time. scale: int8 only.
QUIRE_DEVICE void store_code(backend::KvType type, std::byte* codes, std::uint32_t place, float x, float scale) {
  switch (type) {
    case backend::KvType::kF32:
      reinterpret_cast<float*>(codes)[place] = x;
      return;
    case backend::KvType::kBF16:
      reinterpret_cast<std::uint16_t*>(codes)[place] = bf16_of_f32(x);
      return;
    case backend::KvType::kFp8:
      reinterpret_cast<std::uint8_t*>(codes)[place] = fp8_of_f32(x);
      return;
    default:
      reinterpret_cast<std::int8_t*>(codes)[place] = int8_code(x, scale);
  }
}

// Copies the bits of a code; not for int4.
QUIRE_DEVICE void copy_code(backend::KvType type, const std::byte* from, std::uint32_t from_place, std::byte* to,
                            std::uint32_t to_place) {
  switch (type) {
    case backend::KvType::kF32:
      reinterpret_cast<std::uint32_t*>(to)[to_place] = reinterpret_cast<const std::uint32_t*>(from)[from_place];
      return;
    case backend::KvType::kBF16:
      reinterpret_cast<std::uint16_t*>(to)[to_place] = reinterpret_cast<const std::uint16_t*>(from)[from_place];
      return;
    default:
      to[to_place] = from[from_place];
  }
}

}  // namespace quire::gpu
