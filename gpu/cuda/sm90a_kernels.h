// Kernels of instructions that sm_90a alone has, compiled for it alone.
// Thread  any: no state.
#pragma once

#include "gpu/kernels/linear_table.h"

namespace quire::gpu {

// No code (sm90a_absent.cc): this build is not for sm_90a.
WarpgroupTable linear_warpgroups();

}  // namespace quire::gpu
