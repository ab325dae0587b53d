// The __global__ function of a kernel. For nvcc only.
// Thread  any: no state.
#pragma once

#include "gpu/kernels/entry.h"

namespace quire::gpu {

template <typename Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, min_blocks_of<Kernel>())
    enter(const __grid_constant__ typename Kernel::Args args) {
  extern __shared__ __align__(128) std::byte shared[];
  run_dependent<Kernel>(args, shared);
}

// Sets the entries of a table.
struct FillEntries {
  template <typename Kernel>
  void operator()(Entry<Kernel>& to) const {
    to = {reinterpret_cast<const void*>(&enter<Kernel>)};
  }
};

}  // namespace quire::gpu
