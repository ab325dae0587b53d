// Kernels of linear layers, in a translation unit of their own: there are many, and they compile slowly.
// Thread  any: no state.
#pragma once

#include "gpu/kernels/linear_table.h"

namespace quire::gpu {

LinearTable linear_kernels();  // all but warpgroups (sm90a_kernels.h)

}  // namespace quire::gpu
