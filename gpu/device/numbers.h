// Elements of packed weights, read as f32.
// Shape   an index counts elements of their own size; it comes from weight_layout.h.
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
  const float* scales = nullptr;           // [N], where has_output_scales()
  const float* bias = nullptr;             // [N]; null: none
  const std::uint32_t* columns = nullptr;  // [K] backend::HostMatrix::columns; null: rows are taken as they are
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  backend::Format format;
  std::uint32_t step_bytes = 0;  // of formats in tiles
  BlockShape blocks{};           // of such a format
};

// An element of an f32 or f16 weight.
QUIRE_DEVICE float plain_number_at(const WeightView& w, const void* numbers, std::size_t place) {
  return w.format.bits == 32 ? static_cast<const float*>(numbers)[place]
                             : f32_of_f16(static_cast<const std::uint16_t*>(numbers)[place]);
}
QUIRE_DEVICE float plain_number_at(const WeightView& w, std::size_t place) {
  return plain_number_at(w, w.numbers, place);
}

// Output o of a tile, input i of a step of blocks: widen_blocks(), of core/backend/weights/blocks.h.
QUIRE_DEVICE float block_number_at(const BlockShape& shape, const std::byte* step, std::uint32_t o, std::uint32_t i) {
  const auto bits = [&](const BlockPlane& plane) {
    const BitPlace at = place_of_code(shape, plane, o, i);
    return (std::to_integer<std::uint32_t>(step[at.byte]) >> at.shift & ((1u << plane.bits) - 1)) << plane.shift;
  };
  const std::uint32_t code = shape.high().bits == 0 ? bits(shape.low()) : bits(shape.low()) | bits(shape.high());
  const std::int32_t value =
      shape.has_table ? static_cast<std::int8_t>((code < 8 ? shape.values[0] : shape.values[1]) >> code % 8 * 8)
                      : static_cast<std::int32_t>(code) - shape.zero;
  if (shape.has_wide_scales()) {
    const std::uint32_t index = i / shape.scale_inputs;
    const float s = *reinterpret_cast<const float*>(step + shape.wide_at(index, o));
    if (shape.is_fp8) return s * f32_of_fp8(static_cast<std::uint8_t>(code));
    if (shape.has_floats) return s * shape.floats[code];
    const std::int32_t zero =
        shape.has_zeros ? *reinterpret_cast<const std::int8_t*>(step + shape.zero_at(index, o)) : 0;
    return s * static_cast<float>(value - zero);
  }
  const std::uint32_t group = i / shape.group;
  const auto half = [&](std::uint32_t kind) {
    const auto word = *reinterpret_cast<const std::uint16_t*>(step + shape.half_at(kind, group, o));
    return shape.scales == backend::BlockScales::kBF16 ? f32_of_bf16(word) : f32_of_f16(word);
  };
  const auto scale = [&](std::uint32_t kind) {
    if (!shape.has_integers()) return half(kind);
    const auto integer = *reinterpret_cast<const std::int8_t*>(step + shape.integer_at(kind, group, o));
    return half(kind) * static_cast<float>(integer);
  };
  const float product = scale(0) * static_cast<float>(value);
  if (shape.kinds == 1) return product;
  return product + (shape.has_integers() ? -scale(1) : scale(1));
}

// The step that has a number, of a weight whose numbers lie at `numbers`.
QUIRE_DEVICE const std::byte* step_of(const WeightView& w, const void* numbers, std::uint32_t output,
                                      std::uint32_t input) {
  return static_cast<const std::byte*>(numbers) +
         step_at(w.step_bytes, w.n, w.k, output / kTileOutputs, input / kStepInputs);
}
QUIRE_DEVICE const std::byte* step_of(const WeightView& w, std::uint32_t output, std::uint32_t input) {
  return step_of(w, w.numbers, output, input);
}
// Without the matrix's factor, if it has one.
QUIRE_DEVICE float block_number_at(const WeightView& w, const void* numbers, std::uint32_t output,
                                   std::uint32_t input) {
  return block_number_at(w.blocks, step_of(w, numbers, output, input), output % kTileOutputs, input % kStepInputs);
}
QUIRE_DEVICE float block_number_at(const WeightView& w, std::uint32_t output, std::uint32_t input) {
  return block_number_at(w, w.numbers, output, input);
}

QUIRE_DEVICE float number_at(const WeightView& w, std::uint32_t output, std::uint32_t input) {
  if (!in_tiles(w.format)) return plain_number_at(w, place_in_columns(w.n, output, input));
  const std::uint32_t in_tile = output % kTileOutputs;
  const std::uint32_t in_step = input % kStepInputs;
  const std::byte* step = step_of(w, output, input);
  if (w.format.is_blocks()) {
    const float number = block_number_at(w, output, input);
    return w.scales == nullptr ? number : number * w.scales[output];
  }
  const std::uint32_t place = place_in_step(w.format, in_tile, in_step);
  if (has_output_scales(w.format)) {
    const float code = w.format.element == backend::Format::Element::kE4M3
                           ? f32_of_fp8(reinterpret_cast<const std::uint8_t*>(step)[place])
                           : static_cast<float>(reinterpret_cast<const std::int8_t*>(step)[place]);
    return code * w.scales[output];
  }
  if (!in_nibbles(w.format)) return f32_of_bf16(reinterpret_cast<const std::uint16_t*>(step)[place]);
  const auto nibble = static_cast<std::int32_t>(std::to_integer<std::uint32_t>(step[place / 2]) >> place % 2 * 4 & 15u);
  const std::int32_t code = in_integers(w.format) ? (nibble ^ 8) - 8 : nibble - 8;
  const auto scale = *reinterpret_cast<const std::uint16_t*>(step + scale_in_step(in_tile, in_step));
  return static_cast<float>(code) * f32_of_bf16(scale);
}

}  // namespace quire::gpu
