// Tensor-core product of 16 outputs, 8 rows and 16 inputs in bf16, and the fragment layout in the lanes of a warp.
//   c[o, t] += sum over k of a[o, k] * b[k, t]: a are weights, b rows of activations.
// Shape   per lane, a: 4 words of two bf16; b: 2; c: 4 floats. Lane l = 4 g + q, word w, half h:
//           a  output g + 8 (w mod 2), input 2 q + h + 8 (w div 2)
//           b  row g, input 2 q + h + 8 w
//           c  element i: output g + 8 (i div 2), row 2 q + i mod 2
// Order   on the device the hardware's. Kernels rely on two properties of it: it is the same for every column of b, and
//         it does not depend on other columns. The simulator adds products with k ascending, each rounded once.
// Source  PTX ISA, mma.m16n8k16.
#pragma once

#include "core/base/float_bits.h"
#include "gpu/device/simt.h"

namespace quire::gpu {

inline constexpr unsigned kTileOutputs = 16;
inline constexpr unsigned kTileRows = 8;
inline constexpr unsigned kTileInputs = 16;

// Place of element (output, input) in a tile of weights, 0..255: a lane's four words are adjacent.
constexpr unsigned place_in_tile(unsigned output, unsigned input) {
  const unsigned lane = output % 8 * 4 + input % 8 / 2;
  const unsigned word = output / 8 + input / 8 * 2;
  return lane * 8 + word * 2 + input % 2;
}

struct Product {
  float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
};

// Called by all lanes of a warp.
QUIRE_DEVICE void add_product(Product& sum, const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
#if defined(__CUDACC__)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sum.c[0]), "+f"(sum.c[1]), "+f"(sum.c[2]), "+f"(sum.c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  const sim::WarpWords& shown = sim::show({a[0], a[1], a[2], a[3], b[0], b[1]});
  const auto half = [](std::uint32_t word, unsigned which) {
    return f32_of_bf16(static_cast<std::uint16_t>(word >> 16 * which));
  };
  const unsigned lane = thread() % kWarp;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned output = lane / 4 + 8 * (i / 2);
    const unsigned row = lane % 4 * 2 + i % 2;
    for (unsigned k = 0; k < kTileInputs; ++k) {
      const unsigned place = place_in_tile(output, k);
      const float weight = half(shown[place / 8][place % 8 / 2], place % 2);
      const float x = half(shown[row * 4 + k % 8 / 2][4 + k / 8], k % 2);
      sum.c[i] = fma(weight, x, sum.c[i]);
    }
  }
  sim::looked();
#endif
}

}  // namespace quire::gpu
