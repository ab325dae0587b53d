#include "core/backend/weights/quantize.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/base/float_bits.h"

namespace quire::backend {
namespace {

constexpr std::size_t kPart = 256;  // elements widened at a time
constexpr std::uint16_t kBf16NaN = 0x7fc0;

// To the nearest integer, ties to even, |x| < 2^22: the first addition rounds.
float rounded(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }

// The bits of |x|. They order as the magnitudes do; infinity and NaN are above every finite value.
std::uint32_t size_bits(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7fffffffu; }
constexpr std::uint32_t kInfinityBits = 0x7f800000u;

template <typename Bits, typename Widened>
void widen_each(const std::byte* source, std::span<float> out, Widened widened) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Bits bits;
    std::memcpy(&bits, source + i * sizeof(Bits), sizeof(Bits));
    out[i] = widened(bits);
  }
}

float stored_scale(const std::byte* row, Format stored, std::size_t k) {
  float scale = 0.0f;
  std::memcpy(&scale, row + stored_bytes(stored, k), sizeof(scale));
  return scale;
}

template <typename Code, typename CodeOf>
void codes(std::span<const float> w, float scale, Code* out, CodeOf code_of) {
  if (scale == 0.0f || scale != scale) {
    std::fill_n(out, w.size(), Code{0});
    return;
  }
  for (std::size_t i = 0; i < w.size(); ++i) out[i] = code_of(w[i] / scale);
}
// Clamps, since x can exceed the range if the scale was rounded, as subnormal scales are.
std::int8_t whole(float x, float lowest, float highest) {
  return static_cast<std::int8_t>(rounded(std::clamp(x, lowest, highest)));
}

}  // namespace

void widen(const std::byte* source, Format stored, std::span<float> out) {
  if (stored == Format::kF32) {
    std::memcpy(out.data(), source, out.size_bytes());
  } else if (stored.is_blocks()) {
    widen_blocks(stored.blocks, source, out);
  } else if (stored == Format::kBF16) {
    widen_each<std::uint16_t>(source, out, f32_of_bf16);
  } else if (stored == Format::kFp8) {
    widen_each<std::uint8_t>(source, out, f32_of_fp8);
  } else if (stored == Format::kInt8) {
    widen_each<std::int8_t>(source, out, [](std::int8_t code) { return static_cast<float>(code); });
  } else {
    widen_each<std::uint16_t>(source, out, f32_of_f16);
  }
}

void widen_row(const std::byte* row, Format stored, std::span<float> out) {
  widen(row, stored, out);
  if (!has_stored_scales(stored)) return;
  const float scale = stored_scale(row, stored, out.size());
  for (float& number : out) number *= scale;
}

float output_scale(Format format, const std::byte* row, Format stored, std::size_t k) {
  if (has_stored_scales(stored)) return stored_scale(row, stored, k);
  std::uint32_t largest = 0;
  float part[kPart];
  for (std::size_t first = 0; first < k; first += kPart) {
    const std::size_t count = std::min(kPart, k - first);
    widen(row + stored_bytes(stored, first), stored, {part, count});
    for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, size_bits(part[i]));
  }
  if (largest >= kInfinityBits) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(largest) / (format.element == Format::Element::kE4M3 ? kFp8Highest : 127.0f);
}

void output_codes(Format format, std::span<const float> w, float scale, std::byte* out) {
  if (format.element == Format::Element::kE4M3)
    return codes(w, scale, reinterpret_cast<std::uint8_t*>(out), fp8_of_f32);
  codes(w, scale, reinterpret_cast<std::int8_t*>(out), [](float x) { return whole(x, -127.0f, 127.0f); });
}

std::uint16_t int4_scale(std::span<const float> group) {
  float largest = 0.0f;
  for (const float w : group) {
    if (size_bits(w) >= kInfinityBits) return kBf16NaN;
    if (size_bits(w) > size_bits(largest)) largest = w;
  }
  return bf16_of_f32(largest / -8.0f);
}

void int4_codes(std::span<const float> group, std::uint16_t scale, std::int8_t* out) {
  codes(group, f32_of_bf16(scale), out, [](float x) { return whole(x, -8.0f, 7.0f); });
}

}  // namespace quire::backend
