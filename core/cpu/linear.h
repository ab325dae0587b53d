// out[r,:] = x[r,:] · Wᵀ (· scales) + bias for any number of rows, in one pass over the weights.
// Shape   x [rows, K], w [N, K] in panels, out [rows, N].
// Thread  engine; shares panels, and rows where there are few panels, out over the team.
#pragma once

#include <cstdint>

#include "core/cpu/isa/kernels.h"
#include "core/cpu/parallel_for.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

void linear(const Kernels& kernels, Team& team, const HostBuffer& x, const PackedWeight& w, std::uint32_t rows,
            HostBuffer& out);

}  // namespace quire::cpu
