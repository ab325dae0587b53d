// sin, cos, log, exp and pow in double from + - * / and fma alone: the same bits on every machine, no libm. Used for
// what loading computes: RoPE tables, slopes of ALiBi. About 1e-15 accurate: all but rare near-ties round to the same
// f32 as exact arithmetic (tests/core/model/rope/rope_math_test.cc measures against long double).
// Thread  any; pure.
// Source  Cody and Waite's two-constant range reduction with fma (Muller et al., Handbook of Floating-Point Arithmetic,
//         2nd ed., 10.2); Taylor series; atanh series for log as in fdlibm's e_log.c. The code is ours.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace quire::model::rope_math {

struct SinCos {
  double sin;
  double cos;
};

namespace detail {

inline constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
inline constexpr double kPiOver2High = 0x1.921fb54442d18p+0;  // pi/2 to 53 bits
inline constexpr double kPiOver2Low = 0x1.1a62633145c07p-54;  // the next 53 bits
inline constexpr double kLn2High = 0x1.62e42fefa39efp-1;
inline constexpr double kLn2Low = 0x1.abc9e3b39803fp-56;
inline constexpr double kInverseLn2 = 0x1.71547652b82fep+0;
inline constexpr double kSqrt2 = 0x1.6a09e667f3bcdp+0;

// 1/n!, correctly rounded.
inline constexpr double kInverseFactorial[] = {1.0,
                                               1.0,
                                               1.0 / 2,
                                               1.0 / 6,
                                               1.0 / 24,
                                               1.0 / 120,
                                               1.0 / 720,
                                               1.0 / 5040,
                                               1.0 / 40320,
                                               1.0 / 362880,
                                               1.0 / 3628800,
                                               1.0 / 39916800,
                                               1.0 / 479001600,
                                               1.0 / 6227020800.0,
                                               1.0 / 87178291200.0,
                                               1.0 / 1307674368000.0,
                                               1.0 / 20922789888000.0,
                                               1.0 / 355687428096000.0,
                                               1.0 / 6402373705728000.0};

// sum over n = first, first+2, … last of (±) y^k / n!, alternating signs, y = x².
template <int kFirst, int kLast>
inline double alternating(double y) {
  double sum = kInverseFactorial[kLast];
  for (int n = kLast - 2; n >= kFirst; n -= 2) sum = kInverseFactorial[n] - y * sum;
  return sum;
}

}  // namespace detail

// |x| <= 2^22. x = q·pi/2 + r, |r| <= pi/4: the first fma is exact (its result is a multiple of 2^-52 below 1), the
// second rounds once. Series to r^17 and r^18: truncation below 1e-19.
inline SinCos sin_cos(double x) {
  const double turns = x * detail::kTwoOverPi;
  const auto quadrant = static_cast<std::int64_t>(turns < 0 ? turns - 0.5 : turns + 0.5);
  const double q = static_cast<double>(quadrant);
  const double r = std::fma(-q, detail::kPiOver2Low, std::fma(-q, detail::kPiOver2High, x));
  const double y = r * r;
  const double s = r - r * (y * detail::alternating<3, 17>(y));
  const double c = 1.0 - y * detail::alternating<2, 18>(y);
  switch (static_cast<std::uint64_t>(quadrant) & 3u) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

struct DoubleDouble {
  double high;
  double low;  // |low| <= ulp(high) / 2
};

// x > 0 and normal. x = m·2^e, m in [1/√2, √2); log m = 2·atanh(f), f = (m-1)/(m+1), |f| < 0.1716.
inline DoubleDouble log_parts(double x) {
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (m > detail::kSqrt2) {
    m *= 0.5;
    ++exponent;
  }
  const double divisor = m + 1.0;
  const double divisor_back = divisor - m;
  const double divisor_rest = (m - (divisor - divisor_back)) + (1.0 - divisor_back);  // rounding error of m + 1
  const double f = (m - 1.0) / divisor;
  const double f_rest = (std::fma(-f, divisor, m - 1.0) - f * divisor_rest) / divisor;  // rounding error of f
  const double y = f * f;
  double tail = 1.0 / 25;  // f^25 / 25; the first omitted term is below 1e-21
  for (int n = 23; n >= 3; n -= 2) tail = 1.0 / n + y * tail;
  const double e = static_cast<double>(exponent);
  const double high = e * detail::kLn2High;
  const double high_rest = std::fma(e, detail::kLn2High, -high);
  const double lead = 2.0 * f;
  const double sum = high + lead;  // with its exact remainder sum_rest: Knuth's two-sum
  const double back = sum - high;
  const double sum_rest = (high - (sum - back)) + (lead - back);
  const double low = sum_rest + (high_rest + (e * detail::kLn2Low + (2.0 * f_rest + lead * (y * tail))));
  const double total = sum + low;
  return {total, low - (total - sum)};
}

inline double log(double x) { return log_parts(x).high; }

// e^(high + low), |high| < 700.
inline double exp_parts(double high, double low) {
  const double scaled = high * detail::kInverseLn2;
  const auto k = static_cast<std::int64_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double kd = static_cast<double>(k);
  const double r = std::fma(-kd, detail::kLn2High, high) + (low - kd * detail::kLn2Low);  // |r| <= 0.35
  double sum = detail::kInverseFactorial[16];
  for (int n = 15; n >= 2; --n) sum = detail::kInverseFactorial[n] + r * sum;
  const double mantissa = 1.0 + (r + r * (r * sum));
  return mantissa * std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

inline double exp(double x) { return exp_parts(x, 0.0); }

// base > 0, |exponent · log(base)| < 700.
inline double pow(double base, double exponent) {
  const DoubleDouble logarithm = log_parts(base);
  const double high = exponent * logarithm.high;
  const double low = std::fma(exponent, logarithm.high, -high) + exponent * logarithm.low;
  return exp_parts(high, low);
}

}  // namespace quire::model::rope_math
