// Conversions of bf16, f16 and fp8 (e4m3fn), as bits, to f32 (exact), and from it (to nearest, ties to even). Results
// are those of the vector instructions.
// Shape   scalars.
// Source  bf16: top half of an f32; f16: IEEE 754-2019 binary16; fp8: OCP 8-bit Floating Point Specification 1.0.
#pragma once

#include <bit>
#include <cstdint>

namespace quire {

constexpr float f32_of_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

constexpr std::uint16_t bf16_of_f32(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);  // NaN stays NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float f32_of_f16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // subnormals and zero: exact
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
}

constexpr std::uint16_t f16_of_f32(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // from 65520 on, infinity
  if (magnitude < 0x38800000u) {  // subnormal: whole multiples of 2^-24; the addition rounds
    const float whole = std::bit_cast<float>(magnitude) * 0x1p24f + 0x1p23f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(whole) & 0x7ffu));
  }
  const std::uint32_t rounded = (magnitude + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  return static_cast<std::uint16_t>(sign | (rounded - (112u << 10)));
}

inline constexpr float kFp8Highest = 448.0f;

// e4m3fn has no infinity and one NaN of each sign.
constexpr float f32_of_fp8(std::uint8_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x80u} << 24;
  const std::uint32_t exponent = (bits >> 3) & 0xfu;
  const std::uint32_t fraction = bits & 7u;
  if ((bits & 0x7fu) == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 120) << 23) | (fraction << 20));
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-9f) | sign);
}

// Rounds to nearest, ties to even, and saturates at 448. An infinity becomes NaN: it is a fault, not a large number.
constexpr std::uint8_t fp8_of_f32(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint8_t>(bits >> 24 & 0x80u);
  float size = std::bit_cast<float>(bits & 0x7fffffffu);
  if (!(size < std::bit_cast<float>(0x7f800000u))) return static_cast<std::uint8_t>(sign | 0x7fu);
  if (size > kFp8Highest) size = kFp8Highest;
  if (size < 0x1p-6f) {  // subnormal: whole multiples of 2^-9; the addition rounds
    const float whole = size * 0x1p9f + 0x1p23f;
    return static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(whole) & 0xfu));
  }
  const std::uint32_t normal = std::bit_cast<std::uint32_t>(size);
  const std::uint32_t rounded = (normal + 0x7ffffu + ((normal >> 20) & 1u)) >> 20;
  return static_cast<std::uint8_t>(sign | (rounded - (120u << 3)));
}

}  // namespace quire
