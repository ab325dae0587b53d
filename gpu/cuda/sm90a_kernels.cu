#include "gpu/cuda/enter.h"
#include "gpu/cuda/sm90a_kernels.h"

namespace quire::gpu {

Entry<LinearWarpgroups> linear_warpgroups() { return entry<LinearWarpgroups>(); }

}  // namespace quire::gpu
