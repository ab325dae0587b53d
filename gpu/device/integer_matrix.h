// Tensor-core product of 16 outputs, 8 rows and 32 inputs, int8 with int32 sums. Sums are exact, so their order does
// not matter.
//   c[o, t] += sum over k of a[o, k] * b[k, t]: a are weights, b rows.
// Shape   per lane, a: 4 words of four int8; b: 2; c: 4 int32. Lane l = 4 g + q, word w, byte i:
//           a  output g + 8 (w mod 2), input 4 q + i + 16 (w div 2)
//           b  row g, input 4 q + i + 16 w
//           c  as in matrix.h
// Source  PTX ISA, mma.m16n8k32.
#pragma once

#include "gpu/device/matrix.h"

namespace quire::gpu {

inline constexpr unsigned kIntegerInputs = 32;

struct IntegerPlace {
  unsigned lane = 0;
  unsigned word = 0;
  unsigned byte = 0;
};
// Place of a weight within 16 outputs × 32 inputs.
constexpr IntegerPlace integer_place(unsigned output, unsigned input) {
  return {output % 8 * 4 + input % 16 / 4, output / 8 + input / 16 * 2, input % 4};
}

struct IntegerProduct {
  std::int32_t c[4] = {0, 0, 0, 0};
};

// Called by all lanes of a warp.
QUIRE_DEVICE void add_product(IntegerProduct& sum, const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
#if defined(__CUDACC__)
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+r"(sum.c[0]), "+r"(sum.c[1]), "+r"(sum.c[2]), "+r"(sum.c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  const sim::WarpWords& shown = sim::show({a[0], a[1], a[2], a[3], b[0], b[1]});
  const auto number = [](std::uint32_t word, unsigned byte) { return static_cast<std::int8_t>(word >> 8 * byte); };
  const unsigned lane = thread() % kWarp;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned output = lane / 4 + 8 * (i / 2);
    const unsigned row = lane % 4 * 2 + i % 2;
    for (unsigned k = 0; k < kIntegerInputs; ++k) {
      const IntegerPlace at = integer_place(output, k);
      sum.c[i] += number(shown[at.lane][at.word], at.byte) * number(shown[row * 4 + k % 16 / 4][4 + k / 16], k % 4);
    }
  }
  sim::looked();
#endif
}

}  // namespace quire::gpu
