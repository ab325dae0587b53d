// Kernels of linear layers, in a unit of their own: they are many, and take a compiler long.
// Thread  any: no state.
#pragma once

#include "gpu/kernels/linear_table.h"

namespace quire::gpu {

LinearTable linear_kernels();  // all but warpgroups (sm90a_kernels.h)

}  // namespace quire::gpu
