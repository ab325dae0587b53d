// Entries of the kernels for the simulator: the function of one thread.
// Thread  any: no state.
#pragma once

#include "gpu/kernels/table.h"

namespace quire::gpu {

const KernelTable& simulated_kernels();

}  // namespace quire::gpu
