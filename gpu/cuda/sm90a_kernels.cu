#include "gpu/cuda/enter.h"
#include "gpu/cuda/sm90a_kernels.h"

namespace quire::gpu {

Entry<LinearWarpgroups> linear_warpgroups() { return entry<LinearWarpgroups>(); }

Entry<AttendWarpgroups> attend_warpgroups() { return entry<AttendWarpgroups>(); }

}  // namespace quire::gpu
