#include "gpu/cuda/enter.h"
#include "gpu/cuda/sm90a_kernels.h"

namespace quire::gpu {

WarpgroupTable linear_warpgroups() { return warpgroup_table(FillEntries()); }

}  // namespace quire::gpu
