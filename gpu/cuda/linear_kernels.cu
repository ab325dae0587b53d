#include "gpu/cuda/enter.h"
#include "gpu/cuda/linear_kernels.h"

namespace quire::gpu {
namespace {

template <typename Kernel>
void fill(Entry<Kernel>& to) {
  to = entry<Kernel>();
}

}  // namespace

LinearTable linear_kernels() {
  return linear_table([](auto& to) { fill(to); });
}

}  // namespace quire::gpu
