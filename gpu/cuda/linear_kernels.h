// Kernels of linear layers, in two translation units of their own: there are many, and they compile slowly.
// Thread  any: no state.
#pragma once

#include "gpu/kernels/linear_table.h"

namespace quire::gpu {

LinearTable linear_kernels();  // all but blocks, and warpgroups (sm90a_kernels.h)
BlockTable block_kernels();

}  // namespace quire::gpu
