// Numbers as weights hold them, read as f32.
// Shape   by index within an array of their own size; layout.h says at which.
// Thread  host and device; pure.
// Source  conversions: core/base/float_bits.h.
#pragma once

#include "core/base/float_bits.h"
#include "gpu/device/layout.h"
#include "gpu/device/simt.h"
#include "gpu/device/weight_layout.h"

namespace quire::gpu {

// A packed weight in device memory.
struct WeightView {
  const void* numbers = nullptr;
  const float* scales = nullptr;  // [N], where has_output_scales()
  const float* bias = nullptr;    // [N]; null: none
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  backend::WeightType type = backend::WeightType::kF32;
};

// Of f32 and f16.
QUIRE_DEVICE float plain_number_at(const WeightView& w, std::size_t place) {
  return w.type == backend::WeightType::kF32 ? static_cast<const float*>(w.numbers)[place]
                                             : f32_of_f16(static_cast<const std::uint16_t*>(w.numbers)[place]);
}

QUIRE_DEVICE float number_at(const WeightView& w, std::uint32_t output, std::uint32_t input) {
  if (!in_tiles(w.type)) return plain_number_at(w, place_in_columns(w.n, output, input));
  const std::uint32_t in_tile = output % kTileOutputs;
  const std::uint32_t in_step = input % kStepInputs;
  const std::byte* step =
      static_cast<const std::byte*>(w.numbers) + step_at(w.type, w.n, w.k, output / kTileOutputs, input / kStepInputs);
  const std::uint32_t place = place_in_step(w.type, in_tile, in_step);
  if (has_output_scales(w.type)) {
    const float code = w.type == backend::WeightType::kFp8
                           ? f32_of_fp8(reinterpret_cast<const std::uint8_t*>(step)[place])
                           : static_cast<float>(reinterpret_cast<const std::int8_t*>(step)[place]);
    return code * w.scales[output];
  }
  if (!in_nibbles(w.type)) return f32_of_bf16(reinterpret_cast<const std::uint16_t*>(step)[place]);
  const auto nibble = static_cast<std::int32_t>(std::to_integer<std::uint32_t>(step[place / 2]) >> place % 2 * 4 & 15u);
  const std::int32_t code = in_integers(w.type) ? (nibble ^ 8) - 8 : nibble - 8;
  const auto scale = *reinterpret_cast<const std::uint16_t*>(step + scale_in_step(in_tile, in_step));
  return static_cast<float>(code) * f32_of_bf16(scale);
}

}  // namespace quire::gpu
