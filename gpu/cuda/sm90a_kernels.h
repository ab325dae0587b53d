// Kernels with instructions that only sm_90a has, compiled for it alone.
// Thread  any: no state.
#pragma once

#include "gpu/kernels/linear_table.h"

namespace quire::gpu {

// Entries without code if this build is not for sm_90a (sm90a_absent.cc).
WarpgroupTable linear_warpgroups();

}  // namespace quire::gpu
