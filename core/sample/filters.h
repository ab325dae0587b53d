// Which tokens may be drawn at all: min-p, top-k, top-p, as one threshold on z. Ties are kept together.
// Steps   z = (logit - highest) / temperature, so z <= 0 and the highest is 0. A token is kept when z >= the threshold:
//           min-p   log_f32(min_p)
//           top-k   the k-th largest z of those kept so far (all, where fewer than k are)
//           top-p   the largest value whose mass, with all above it, reaches top_p of the mass kept so far
// Mass    floor(exp_f32(z) * 2^40) units, summed in 64 bits: integers, so the sum has no order. The mass aimed at is
//         floor(double(top_p) * double(sum)).
// Floor   below -32 a z has no mass and cannot be drawn (noise.h): such tokens are not counted, and a threshold that
//         low is as good as none.
// Thread  any, with its own scratch.
// Source  top-k: Fan et al. 2018; top-p: Holtzman et al. 2020; min-p: Nguyen et al. 2024. The selection is ours: a
//         radix select by count or by mass, three passes, no sort, exact, whatever the order of the values.
#pragma once

#include <cstddef>

#include "core/sample/params.h"
#include "core/sample/scratch.h"

namespace quire::sample {

inline constexpr float kLowestThatMatters = -32.0f;

// The threshold for scratch.z[0, vocab), none of them NaN, none above 0; -inf where no filter is on. Overwrites the rest
// of scratch.
float filter_threshold(const Params& params, std::size_t vocab, Scratch& scratch);

}  // namespace quire::sample
