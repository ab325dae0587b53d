// Which tokens may be drawn at all: min-p, top-k, top-p, typical, as a range of z. Ties are kept together.
// Steps   z = (logit - highest) / temperature, so z <= 0 and the highest is 0. A token is kept when lowest <= z <= highest:
//           min-p    z >= log_f32(min_p)
//           top-k    z >= the k-th largest z of those kept so far (all, where fewer than k are)
//           top-p    z >= the largest value whose mass, with all above it, reaches top_p of the mass kept so far
//           typical  |z - c| <= the smallest distance whose mass, with all nearer ones, reaches typical_p of the mass kept
//                    so far; c is their mean z. Surprise is log_sum - z, so it is as far from its mean, the entropy, as z
//                    is from c. The likeliest token need not be kept.
// Mass    floor(exp_f32(z) * 2^40) units, summed in 64 bits: integers, so the sum has no order. The mass aimed at is
//         floor(double(top_p) * double(sum)), for typical at least one unit. For the mean, floor(exp_f32(z) * -z * 2^40) is
//         summed likewise; c is the quotient of the sums in f64, rounded to f32, and distances are taken in f32.
// Floor   below -32 a z has no mass and cannot be drawn (noise.h): such tokens are not counted, and a threshold that
//         low is as good as none.
// Thread  any, with its own scratch.
// Source  top-k: Fan et al. 2018; top-p: Holtzman et al. 2020; min-p: Nguyen et al. 2024; typical: Meister et al. 2022. The
//         selection is ours: a radix select by count or by mass, three passes, no sort, exact, whatever the order of the
//         values.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/sample/params.h"
#include "core/sample/scratch.h"

namespace quire::sample {

inline constexpr float kLowestThatMatters = -32.0f;
inline constexpr float kMassOfOne = 0x1p40f;

constexpr std::uint64_t mass_of(float weight) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(weight * kMassOfOne));
}
// The mass that so large a part of all of it aims at.
constexpr std::uint64_t mass_aimed_at(float part, std::uint64_t mass) {
  return static_cast<std::uint64_t>(static_cast<double>(part) * static_cast<double>(mass));
}
// The mean z, of the sum of masses and that of mass_of(exp_f32(z) * -z).
constexpr float mean_of(std::uint64_t moment, std::uint64_t mass) {
  return static_cast<float>(-static_cast<double>(moment) / static_cast<double>(mass));
}
constexpr float distance_of(float z, float center) { return __builtin_fabsf(z - center); }
// Sizes of floats order as their bits do: of z, none above 0, the smaller the key the larger z.
constexpr std::uint32_t key_of(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7fffffffu; }

struct KeptRange {
  float lowest = -std::numeric_limits<float>::infinity();
  float highest = 0.0f;  // a token has this z
};

// The range for scratch.z[0, vocab), none of them NaN, none above 0; all of it where no filter is on. Overwrites kept,
// weights and bins of scratch.
KeptRange kept_range(const Params& params, std::size_t vocab, Scratch& scratch);

}  // namespace quire::sample
