// The kernels' table for the simulator: of each what a thread does.
// Thread  any: no state.
#pragma once

#include "gpu/kernels/table.h"

namespace quire::gpu {

const KernelTable& simulated_kernels();

}  // namespace quire::gpu
