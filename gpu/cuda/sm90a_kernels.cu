#include "gpu/cuda/enter.h"
#include "gpu/cuda/sm90a_kernels.h"

namespace quire::gpu {

namespace {

template <typename Kernel>
void fill(Entry<Kernel>& to) {
  to = entry<Kernel>();
}

}  // namespace

WarpgroupTable linear_warpgroups() {
  return warpgroup_table([](auto& to) { fill(to); });
}

}  // namespace quire::gpu
