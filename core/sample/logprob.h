// Log probabilities of a row's tokens, and the list of its likeliest tokens: from the logits as the model gave them,
// before temperature and filters.
// Steps   highest is the row's highest logit; operations are in f32 unless f64 is named.
//           z       = logit - highest
//           mass    = exp_f32(z) * 2^43, rounded to the nearest integer, ties to even; of -inf it is 0
//           log_sum = log of the sum of the masses in units of 2^43, f64: log_of_mass() below
//           logprob = (logit - highest) - log_sum in f64, then rounded to f32; -inf if it is below f32's range
// Order   any: the masses are integers, and 2^20 of them sum to at most 2^63. Logprobs rise with logits.
// Error   against log_softmax in f64: half an ulp of the logprob + (3 + m) * 2^-24 + V * 2^-44, where m = sum p|z| <=
//         ln V. In units of 2^-24, m comes from rounding z, 1.8 from exp_f32, 1 from the logarithm, 0.2 from
//         second-order terms; V * 2^-44 from rounding masses. Below 1.1e-6 + half an ulp for every row.
// Thread  any, with its own scratch; nothing allocates.
// Source  log-sum-exp relative to the highest; integer masses are ours, as in filters.h, but finer: every token counts.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "core/sample/math.h"
#include "core/sample/params.h"
#include "core/sample/scratch.h"

namespace quire::sample {

inline constexpr int kLogMassBits = 43;
inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// Rounds to the nearest integer, ties to even.
constexpr std::uint64_t log_mass_of(float weight) {
  return static_cast<std::uint64_t>(__builtin_llrintf(weight * 0x1p43f));
}

// log(mass / 2^43) for mass in [2^43, 2^63]: mass = 2^k (1 + f), |f| <= 1/3, f exact before it is rounded to f32. So a
// sum barely above 1 keeps its digits, and the logprob of a nearly certain token is accurate relative to itself.
// __builtin_clzll, since nvcc 13.0 folds std::countl_zero of 64 bits to a constant, whatever the number.
constexpr double log_of_mass(std::uint64_t mass) {
  int exponent = 63 - __builtin_clzll(mass);
  const std::uint64_t low = std::uint64_t{1} << exponent;
  auto above = static_cast<std::int64_t>(mass - low);
  if (mass - low > low / 3) {
    ++exponent;
    above -= static_cast<std::int64_t>(low);
  }
  const float f = static_cast<float>(above) * power_of_two_f32(-exponent);
  return __builtin_fma(static_cast<double>(exponent - kLogMassBits), kLn2, static_cast<double>(log_near_one_f32(f)));
}

constexpr float logprob_of(float logit, float highest, double log_sum) {
  return static_cast<float>((static_cast<double>(logit) - static_cast<double>(highest)) - log_sum);
}

// `highest` is finite and is the highest of the logits. Overwrites scratch.weights.
double log_sum_of(std::span<const float> logits, float highest, Scratch& scratch);

// Writes the tokens of the min(room.size(), V) highest logits to the front of `room` and returns that: likeliest first,
// ties by lowest id, masked tokens last.
std::span<const Candidate> list_likeliest(std::span<const float> logits, float highest, double log_sum,
                                          std::span<Candidate> room);

}  // namespace quire::sample
