// The filters min-p, top-k, top-p and typical: the tokens that may be sampled, as a range of z. Ties are kept together.
// Steps   z = (logit - highest) / temperature, so z <= 0 and the highest is 0. Kept tokens have lowest <= z <= highest:
//           min-p    z >= log_f32(min_p)
//           top-k    z >= the k-th largest z of those kept so far (all if fewer than k are)
//           top-p    z >= the largest value such that the mass at and above it reaches top_p of the mass kept so far
//           typical  |z - c| <= the smallest distance such that the mass within it reaches typical_p of the mass kept
//                    so far; c is the mean z of the tokens kept so far. A token's surprise is log_sum - z, so it is as
//                    far from its mean, the entropy, as z is from c. The likeliest token may be filtered out.
// Mass    floor(exp_f32(z) * 2^40) units, summed in 64 bits: integers, so the sum has no order. The target mass is
//         floor(double(top_p) * double(sum)), for typical at least one unit. For the mean c, the sum of
//         floor(exp_f32(z) * -z * 2^40) is divided by the sum of masses in f64 and rounded to f32; distances are f32.
// Floor   a z below -32 has no mass and cannot be sampled (noise.h): such tokens are not counted, and a threshold below
//         -32 has no effect.
// Thread  any, with its own scratch.
// Source  top-k: Fan et al. 2018; top-p: Holtzman et al. 2020; min-p: Nguyen et al. 2024; typical: Meister et al. 2022.
//         The selection is ours: a radix select by count or by mass, three passes, no sort, exact, whatever the order
//         of the values.
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
// The target mass: `part` (0 to 1) of `mass`.
constexpr std::uint64_t mass_aimed_at(float part, std::uint64_t mass) {
  return static_cast<std::uint64_t>(static_cast<double>(part) * static_cast<double>(mass));
}
// The mean z: `moment` is the sum of mass_of(exp_f32(z) * -z), `mass` the sum of the masses.
constexpr float mean_of(std::uint64_t moment, std::uint64_t mass) {
  return static_cast<float>(-static_cast<double>(moment) / static_cast<double>(mass));
}
constexpr float distance_of(float z, float center) { return __builtin_fabsf(z - center); }
// The bits of |x|, which order as |x| does: since z <= 0, a smaller key is a larger z.
constexpr std::uint32_t key_of(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7fffffffu; }

struct KeptRange {
  float lowest = -std::numeric_limits<float>::infinity();
  float highest = 0.0f;  // the z of some token
};

// The range to sample from for scratch.z[0, vocab), all <= 0 and not NaN; everything if no filter is on. Overwrites
// kept, weights and bins of scratch.
KeptRange kept_range(const Params& params, std::size_t vocab, Scratch& scratch);

}  // namespace quire::sample
