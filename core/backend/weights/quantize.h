// Quantisation of a checkpoint's rows: scales and codes of Format::kInt8, kFp8 and kInt4 (equations: Factory::pack,
// StepOps::multiply).
// Shape   a row or a part of one; kInt4's groups have 32 elements, counted from the row's first.
// Thread  any; pure.
// Equals  plain scalar arithmetic: one IEEE operation at a time, so that every machine packs the same codes.
// Source  int8, fp8: the usual symmetric scale per output channel; e4m3fn: float_bits.h. int4: Q4_0 of ggml (the
//         element of largest magnitude becomes -8 exactly) with a bf16 scale instead of f16: bf16 has the range of f32,
//         and its products with 4-bit codes are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend/weights/format.h"

namespace quire::backend {

// Elements of a checkpoint as f32: exactly, or as widen_blocks() does, whole blocks; `source` may be unaligned. Of a
// format with has_stored_scales() the codes alone: widen_row().
void widen(const std::byte* source, Format stored, std::span<float> out);
// A whole row: out.size() elements. Of a format with has_stored_scales(): code * scale.
void widen_row(const std::byte* row, Format stored, std::span<float> out);

// True if rows that are stored so keep their codes and scales when they are packed in `format`.
constexpr bool keeps_codes(Format stored, Format format) {
  return has_stored_scales(stored) && has_output_scales(format) && stored.element == format.element &&
         stored.bits == format.bits;
}

// Scale of a whole row of k elements, for a format with has_output_scales(): the stored one, or max |w| divided by the
// largest code, 127 or, for fp8, 448. NaN if an element is not finite.
float output_scale(Format format, const std::byte* row, Format stored, std::size_t k);
// Codes w / scale, rounded to nearest, ties to even, one byte each. All 0 if the scale is 0 or NaN (with NaN, the scale
// makes every product NaN).
void output_codes(Format format, std::span<const float> w, float scale, std::byte* out);

// Scale of a group as bf16 bits: its element of largest magnitude (the first of equals) / -8. NaN if one is not finite.
std::uint16_t int4_scale(std::span<const float> group);
// Codes -8 .. 7, by the rules of output_codes().
void int4_codes(std::span<const float> group, std::uint16_t scale, std::int8_t* out);

}  // namespace quire::backend
