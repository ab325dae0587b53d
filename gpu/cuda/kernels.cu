#include "gpu/cuda/enter.h"
#include "gpu/cuda/linear_kernels.h"
#include "gpu/cuda/sm90a_kernels.h"
#include "gpu/kernels/table.h"

namespace quire::gpu {
namespace {

KernelTable all() {
  KernelTable table = other_kernels(FillEntries());
  table.linear = linear_kernels();
  table.linear.blocks = block_kernels();
  table.linear.warpgroups = linear_warpgroups();
  return table;
}

}  // namespace

const KernelTable& cuda_kernels() {
  static const KernelTable table = all();
  return table;
}
std::uint64_t cuda_launch_facts() { return launch_facts(); }

}  // namespace quire::gpu
