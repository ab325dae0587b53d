// Softmax arithmetic of tensor-core attention, by approximate hardware instructions: its results are rounded to bf16,
// or merged, and no order of sums depends on them.
//   exp_near(x), x <= 0: within 2^-19 of exp(x), relatively, and exp_near(0) is 1; NaN stays NaN.
// Shape   a pair is two bf16 in a word, the first in the lower half.
// Thread  any; pure. Equal arguments give equal bits everywhere on a device; the simulator's bits are the CPU's.
// Source  PTX ISA: ex2.approx, max.NaN, cvt.rn.bf16x2.
#pragma once

#include "core/base/float_bits.h"
#include "core/sample/math.h"
#include "gpu/device/simt.h"

namespace quire::gpu {

#if defined(__CUDACC__)

QUIRE_DEVICE float exp_near(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x * 1.44269504f));
  return out;
}
// The higher one; NaN if either is NaN.
QUIRE_DEVICE float highest(float a, float b) {
  float out;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(out) : "f"(a), "f"(b));
  return out;
}
QUIRE_DEVICE std::uint32_t bf16_pair(float first, float second) {
  std::uint32_t out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(second), "f"(first));
  return out;
}

#else

inline float exp_near(float x) { return sample::exp_f32(x); }
inline float highest(float a, float b) { return a > b || a != a ? a : b; }
inline std::uint32_t bf16_pair(float first, float second) {
  return std::uint32_t{bf16_of_f32(second)} << 16 | bf16_of_f32(first);
}

#endif

// The maximum and sum of what a row sees, with a head's sink behind it; `before` is the factor of its weighted values,
// to which 0 is added.
struct WithSink {
  float max;
  float sum;
  float before;
};
template <typename Exp>
QUIRE_DEVICE WithSink with_sink(float max, float sum, float score, const Exp& exp) {
  const float higher = score > max ? score : max;
  const float before = exp(max - higher);
  return {higher, fma(sum, before, exp(score - higher)), before};
}

}  // namespace quire::gpu
