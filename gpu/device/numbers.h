// Numbers as weights hold them, read as f32.
// Shape   by index within an array of their own size; layout.h says at which.
// Thread  host and device; pure.
// Source  conversions: core/base/float_bits.h.
#pragma once

#include "core/base/float_bits.h"
#include "gpu/device/layout.h"
#include "gpu/device/simt.h"

namespace quire::gpu {

// A packed weight in device memory.
struct WeightView {
  const void* numbers = nullptr;
  const float* scales = nullptr;  // [N], kInt8
  const float* bias = nullptr;    // [N]; null: none
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  backend::WeightType type = backend::WeightType::kF32;
};

constexpr std::size_t bytes_of(backend::WeightType type) {
  if (type == backend::WeightType::kF32) return 4;
  return type == backend::WeightType::kInt8 ? 1 : 2;
}

// Without its scale.
QUIRE_DEVICE float code_at(const WeightView& w, std::size_t place) {
  switch (w.type) {
    case backend::WeightType::kF32:
      return static_cast<const float*>(w.numbers)[place];
    case backend::WeightType::kF16:
      return f32_of_f16(static_cast<const std::uint16_t*>(w.numbers)[place]);
    case backend::WeightType::kInt8:
      return static_cast<float>(static_cast<const std::int8_t*>(w.numbers)[place]);
    default:
      return f32_of_bf16(static_cast<const std::uint16_t*>(w.numbers)[place]);
  }
}

QUIRE_DEVICE float number_at(const WeightView& w, std::uint32_t output, std::uint32_t input) {
  const float code = code_at(w, place_of_weight(w.type, w.n, w.k, output, input));
  return w.scales == nullptr ? code : code * w.scales[output];
}

}  // namespace quire::gpu
