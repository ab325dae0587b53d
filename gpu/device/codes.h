// Conversion of codes of 8 and 4 bits to what the tensor cores take: exact, a few instructions per word.
// Shape   a pair is two bf16 in a word. bf16 has 8 significant bits: 128 + v, 0 <= v < 128, has the bits 0x4300 + v.
// Thread  host and device; pure.
// Source  PTX ISA, fma.rn.bf16x2; codes put into the low bits of a constant: Kim et al. 2022, Marlin (Frantar et al.
//         2024); the treatment of signs is ours.
#pragma once

#include "core/base/float_bits.h"
#include "gpu/device/simt.h"

namespace quire::gpu {

// a · b + c for both bf16 of a word, each rounded once.
QUIRE_DEVICE std::uint32_t fma_of_pair(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#if defined(__CUDACC__)
  std::uint32_t out;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
#else
  const auto half = [&](unsigned shift) {
    const auto number = [&](std::uint32_t word) { return f32_of_bf16(static_cast<std::uint16_t>(word >> shift)); };
    // Exact in f32 for every use but one: an int4 group whose lowest dwarfs its step is rounded twice on the host.
    return std::uint32_t{bf16_of_f32(fma(number(a), number(b), number(c)))} << shift;
  };
  return half(0) | half(16);
#endif
}
// a + b, for sums that bf16 holds exactly.
QUIRE_DEVICE std::uint32_t add_pairs(std::uint32_t a, std::uint32_t b) { return fma_of_pair(a, 0x3f803f80u, b); }

// The signed bytes 0 and 2 of a word as a pair: 128 plus the lower bits, minus 128 or, if the sign bit is set, 256.
QUIRE_DEVICE std::uint32_t pair_of_bytes(std::uint32_t word) {
  return add_pairs((word & 0x007f007fu) | 0x43004300u, (word & 0x00800080u) | 0xc300c300u);
}

// The e4m3fn bytes 0 and 2 of a word as a pair, no NaN among them: exponent and fraction are put into a bf16, which is
// 120 binades too low; the product with 2^120 is exact, also for subnormals.
QUIRE_DEVICE std::uint32_t pair_of_fp8_bytes(std::uint32_t word) {
  constexpr std::uint32_t kScale = 0x7b807b80u;  // 2^120
  return fma_of_pair((word & 0x007f007fu) << 4, kScale, 0u) | (word & 0x00800080u) << 8;
}

// The lowest nibbles of both halves of a word as a pair; a nibble holds the number + 8.
QUIRE_DEVICE std::uint32_t pair_of_nibbles(std::uint32_t word) {
  return add_pairs((word & 0x000f000fu) | 0x43004300u, 0xc308c308u);
}

// The low, and the high, nibbles of all four bytes as signed bytes of 16 times the number.
inline constexpr float kNibbleUnit = 0.0625f;
QUIRE_DEVICE std::uint32_t bytes_of_low_nibbles(std::uint32_t word) { return word << 4 & 0xf0f0f0f0u; }
QUIRE_DEVICE std::uint32_t bytes_of_high_nibbles(std::uint32_t word) { return word & 0xf0f0f0f0u; }

// Four codes less `zero`, as signed bytes. Codes are below 128, and less `zero` at least -128.
QUIRE_DEVICE std::uint32_t bytes_less(std::uint32_t codes, std::uint32_t zero) {
  return ((codes | 0x80808080u) - zero * 0x01010101u) ^ 0x80808080u;
}

// Bytes of eight, `low` and `high`, chosen by the lowest four nibbles of a word; bit 3 of a nibble says nothing.
QUIRE_DEVICE std::uint32_t chosen_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t nibbles) {
#if defined(__CUDACC__)
  return __byte_perm(low, high, nibbles & 0x7777u);
#else
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  std::uint32_t out = 0;
  for (unsigned i = 0; i < 4; ++i) {
    out |= static_cast<std::uint32_t>(both >> (nibbles >> 4 * i & 7u) * 8 & 0xffu) << 8 * i;
  }
  return out;
#endif
}

// The table's bytes for the low nibbles of all four bytes of a word, and for their high ones.
struct TableBytes {
  std::uint32_t of_low;
  std::uint32_t of_high;
};
QUIRE_DEVICE TableBytes table_bytes(std::uint32_t nibbles, std::uint64_t first_eight, std::uint64_t last_eight) {
  const auto four = [&](std::uint32_t which) {
    const auto of = [&](std::uint64_t eight) {
      return chosen_bytes(static_cast<std::uint32_t>(eight), static_cast<std::uint32_t>(eight >> 32), which);
    };
    // Bit 3 of each nibble, as all bits of a byte.
    const std::uint32_t bit = which >> 3 & 0x1111u;
    const std::uint32_t is_last =
        ((bit & 1u) | (bit & 0x10u) << 4 | (bit & 0x100u) << 8 | (bit & 0x1000u) << 12) * 0xffu;
    return (of(first_eight) & ~is_last) | (of(last_eight) & is_last);
  };
  const std::uint32_t front = four(nibbles & 0xffffu);
  const std::uint32_t back = four(nibbles >> 16);
  return {chosen_bytes(front, back, 0x6420u), chosen_bytes(front, back, 0x7531u)};
}

QUIRE_DEVICE float f32_of_half(std::uint32_t bits) {
#if defined(__CUDACC__)
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(static_cast<std::uint16_t>(bits)));
  return out;
#else
  return f32_of_f16(static_cast<std::uint16_t>(bits));
#endif
}

}  // namespace quire::gpu
