// A row of a checkpoint in fewer bits: the scales and codes of WeightType::kInt8, kFp8 and kInt4 (equations: Ops::linear).
// Shape   a row or a part of one; kInt4's groups are kInt4Group numbers long, counted from the row's first.
// Thread  any; pure.
// Equals  plain scalar arithmetic: one IEEE operation a line, so that every machine packs the same codes.
// Source  int8, fp8: symmetric by output channel, as everywhere; e4m3fn: float_bits.h. int4: ggml's Q4_0 (the largest number is -8 exactly) with
//         the scale in bf16 instead of f16: the range of a float, and products with 4-bit codes that are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend/tensors.h"

namespace quire::backend {

// Elements of a checkpoint as f32, exactly; they may be unaligned.
void widen(const std::byte* source, DType dtype, std::span<float> out);

// Of a whole row of k elements in a type that has_output_scales(): max |w| over the type's largest code, which is 127, or 448 in fp8;
// NaN where any is not finite.
float output_scale(WeightType type, const std::byte* row, DType dtype, std::size_t k);
// w / scale to the nearest, ties to even; 0 without a scale, and with NaN, which makes up for it. A byte each.
void output_codes(WeightType type, std::span<const float> w, float scale, std::byte* out);

// Of a group: its number of the largest size (the first of these) / -8, as bf16 bits; NaN where any is not finite.
std::uint16_t int4_scale(std::span<const float> group);
// -8 .. 7 as output_codes().
void int4_codes(std::span<const float> group, std::uint16_t scale, std::int8_t* out);

}  // namespace quire::backend
