// Numbers of 8 and 4 bits as what the tensor cores take: exactly, a few instructions for a word of them.
// Shape   a pair is two bf16 in a word. bf16 has 8 significant bits: 128 + v, 0 <= v < 128, has the bits 0x4300 + v.
// Thread  host and device; pure.
// Source  PTX ISA: fma.rn.bf16x2; numbers put into a constant's low bits: Kim et al. 2022, Marlin (Frantar et al. 2024); the signs ours.
#pragma once

#include "core/base/float_bits.h"
#include "gpu/device/simt.h"

namespace quire::gpu {

// Two bf16 at once: a · b + c, rounded once.
QUIRE_DEVICE std::uint32_t fma_of_pair(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#if defined(__CUDACC__)
  std::uint32_t out;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
#else
  const auto half = [&](unsigned shift) {
    const auto number = [&](std::uint32_t word) { return f32_of_bf16(static_cast<std::uint16_t>(word >> shift)); };
    // Exact in f32 for all that is asked of it here, but for an int4 whose lowest dwarfs its step: that rounds twice on the host.
    return std::uint32_t{bf16_of_f32(fma(number(a), number(b), number(c)))} << shift;
  };
  return half(0) | half(16);
#endif
}
// Of sums that bf16 holds exactly.
QUIRE_DEVICE std::uint32_t add_pairs(std::uint32_t a, std::uint32_t b) { return fma_of_pair(a, 0x3f803f80u, b); }

// Of the signed numbers in bytes 0 and 2: 128 and the lower bits, less 128 or, where the sign is set, 256.
QUIRE_DEVICE std::uint32_t pair_of_bytes(std::uint32_t word) {
  return add_pairs((word & 0x007f007fu) | 0x43004300u, (word & 0x00800080u) | 0xc300c300u);
}

// Of e4m3fn in bytes 0 and 2, no NaN among them: exponent and fraction as bf16's, 120 binades too low; the product is exact,
// subnormals too.
QUIRE_DEVICE std::uint32_t pair_of_fp8_bytes(std::uint32_t word) {
  constexpr std::uint32_t kScale = 0x7b807b80u;  // 2^120
  return fma_of_pair((word & 0x007f007fu) << 4, kScale, 0u) | (word & 0x00800080u) << 8;
}

// Of the numbers in the lowest nibbles of both halves, which say 8 more.
QUIRE_DEVICE std::uint32_t pair_of_nibbles(std::uint32_t word) {
  return add_pairs((word & 0x000f000fu) | 0x43004300u, 0xc308c308u);
}

// The low nibbles of all bytes, and the high ones, as bytes that say 16 times the number.
inline constexpr float kNibbleUnit = 0.0625f;
QUIRE_DEVICE std::uint32_t bytes_of_low_nibbles(std::uint32_t word) { return word << 4 & 0xf0f0f0f0u; }
QUIRE_DEVICE std::uint32_t bytes_of_high_nibbles(std::uint32_t word) { return word & 0xf0f0f0f0u; }

}  // namespace quire::gpu
