#include "gpu/simulated/simulated_kernels.h"

namespace quire::gpu {
namespace {

template <typename Kernel>
void thread_of(const void* args, std::byte* shared) {
  run_dependent<Kernel>(*static_cast<const typename Kernel::Args*>(args), shared);
}

struct Fill {
  template <typename Kernel>
  void operator()(Entry<Kernel>& to) const {
    to = {reinterpret_cast<const void*>(&thread_of<Kernel>)};
  }
};

KernelTable all() {
  KernelTable table = other_kernels(Fill());
  table.linear = linear_table(Fill());
  table.linear.blocks = block_table(Fill());
  table.linear.warpgroups = warpgroup_table(Fill());
  return table;
}

}  // namespace

const KernelTable& simulated_kernels() {
  static const KernelTable table = all();
  return table;
}

}  // namespace quire::gpu
