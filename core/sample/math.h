// exp, gelu, tanh and log of one f32: our own, with the same bits on every instruction set, on host and device.
// Steps   each line below is one IEEE operation, round to nearest even, subnormals kept; a vector file that does the
//         same lines in lanes has the same bits. min(a, b) is (a < b ? a : b) and max(a, b) is (a > b ? a : b), as
//         x86's minps and maxps are: with x as the second operand a NaN passes through. Integers wrap; >> keeps the
//         sign. The payload of a NaN is not guaranteed.
// Range   exp: NaN -> NaN; x <= -104 -> +0; exp(0) = 1; small results are subnormal; overflow -> +inf.
//         expm1: NaN -> NaN; x <= -18 -> -1; x is taken as at most 88.
//         tanh: NaN -> NaN; |x| >= 9 -> 1 with its sign; 0 -> 0.
//         gelu, x times the normal distribution up to x: NaN -> NaN; +inf -> +inf; x <= -15 -> -0.
//         log: NaN and x < 0 -> NaN; +-0 -> -inf; 1 -> +0; +inf -> +inf; subnormals are not flushed to zero.
// Error   at most 0.90 ulp for exp and 3.38 ulp for tanh (every f32 was tried), 0.94 ulp for log; 2^-23 of
//         max(|x|, 1) for gelu; math_test.cc samples
//         all of them against f64.
// Thread  any; the caller's floating-point mode must be the default one (no flush to zero).
// Source  Cody & Waite 1980 (reduction); coefficients ours, exp_constants.h.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "core/sample/exp_constants.h"

// constexpr makes these device functions too (nvcc --expt-relaxed-constexpr). clang cannot fold __builtin_fmaf and
// would reject constexpr here and in noise.h.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Winvalid-constexpr"
#endif

namespace quire::sample {

// 2^n, n in [-126, 127], by its bits.
constexpr float power_of_two_f32(std::int32_t n) {
  return std::bit_cast<float>((static_cast<std::uint32_t>(n) + kExpBias) << kExpFractionBits);
}

// p * 2^n, n in the low bits of t = n + kExpMagic, n in [-150, 128], in two steps: the first product is exact, the
// second rounds once, to a subnormal or +inf too.
constexpr float times_power_of_two_f32(float p, float t) {
  const auto whole = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(t) - kExpMagicBits);
  const std::int32_t half = whole >> 1;
  return (p * power_of_two_f32(half)) * power_of_two_f32(whole - half);
}

constexpr float exp_f32(float x) {
  x = kExpLowest > x ? kExpLowest : x;    // max(lowest, x)
  x = kExpHighest < x ? kExpHighest : x;  // min(highest, x)
  const float t = __builtin_fmaf(x, kExpLog2E, kExpMagic);
  const float n = t - kExpMagic;
  const float r = __builtin_fmaf(n, -kExpLn2Low, __builtin_fmaf(n, -kExpLn2High, x));
  float p = __builtin_fmaf(kExpC6, r, kExpC5);
  p = __builtin_fmaf(p, r, kExpC4);
  p = __builtin_fmaf(p, r, kExpC3);
  p = __builtin_fmaf(p, r, kExpC2);
  p = __builtin_fmaf(p, r, 1.0f);
  p = __builtin_fmaf(p, r, 1.0f);
  return times_power_of_two_f32(p, t);
}

constexpr float gelu_f32(float x) {
  const float size = -x > x ? -x : x;
  const float s = kGeluHighest < size ? kGeluHighest : size;
  float p = __builtin_fmaf(kGeluC9, s, kGeluC8);
  p = __builtin_fmaf(p, s, kGeluC7);
  p = __builtin_fmaf(p, s, kGeluC6);
  p = __builtin_fmaf(p, s, kGeluC5);
  p = __builtin_fmaf(p, s, kGeluC4);
  p = __builtin_fmaf(p, s, kGeluC3);
  p = __builtin_fmaf(p, s, kGeluC2);
  p = __builtin_fmaf(p, s, kGeluC1);
  const float tail = exp_f32(__builtin_fmaf(-0.5f * size, size, p * s));
  return __builtin_fmaf(-0.5f * s, tail, 0.0f > x ? 0.0f : x);
}

// e^y - 1 = 2^n (e^r - 1) + (2^n - 1), which is accurate near 0, where n is 0; y in [kExpLowest, kExpm1Highest].
constexpr float expm1_near_f32(float y) {
  const float t = __builtin_fmaf(y, kExpLog2E, kExpMagic);
  const float n = t - kExpMagic;
  const float r = __builtin_fmaf(n, -kExpLn2Low, __builtin_fmaf(n, -kExpLn2High, y));
  float p = __builtin_fmaf(kExpC6, r, kExpC5);
  p = __builtin_fmaf(p, r, kExpC4);
  p = __builtin_fmaf(p, r, kExpC3);
  p = __builtin_fmaf(p, r, kExpC2);
  p = __builtin_fmaf(p, r, 1.0f);
  const float power = times_power_of_two_f32(1.0f, t);
  return __builtin_fmaf(power, p * r, power - 1.0f);
}

constexpr float expm1_f32(float x) {
  x = kExpLowest > x ? kExpLowest : x;
  return expm1_near_f32(kExpm1Highest < x ? kExpm1Highest : x);
}

// (e^2x - 1) / (e^2x + 1).
constexpr float tanh_f32(float x) {
  x = -kTanhHighest > x ? -kTanhHighest : x;
  x = kTanhHighest < x ? kTanhHighest : x;
  const float q = expm1_near_f32(x + x);
  return q / (q + 2.0f);
}

// log(1 + f), |f| <= 1/3: accurate relative to f, even if 1 + f would round f away.
constexpr float log_near_one_f32(float f) {
  float p = __builtin_fmaf(kLogC10, f, kLogC9);
  p = __builtin_fmaf(p, f, kLogC8);
  p = __builtin_fmaf(p, f, kLogC7);
  p = __builtin_fmaf(p, f, kLogC6);
  p = __builtin_fmaf(p, f, kLogC5);
  p = __builtin_fmaf(p, f, kLogC4);
  p = __builtin_fmaf(p, f, kLogC3);
  p = __builtin_fmaf(p, f, kLogC2);
  return __builtin_fmaf(p, f * f, f);
}

constexpr float log_f32(float x) {
  const bool subnormal = x < kLogSmallestNormal;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(subnormal ? x * kLogLift : x);
  const std::int32_t k = static_cast<std::int32_t>(bits - kLogLowestFraction) >> kExpFractionBits;
  const float f = std::bit_cast<float>(bits - (static_cast<std::uint32_t>(k) << kExpFractionBits)) - 1.0f;  // exact
  const float y = __builtin_fmaf(static_cast<float>(subnormal ? k - kLogLiftBits : k), kLogLn2, log_near_one_f32(f));
  if (x > 0.0f && x < std::numeric_limits<float>::infinity()) return y;
  if (x == 0.0f) return -std::numeric_limits<float>::infinity();
  return x > 0.0f ? x : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace quire::sample
