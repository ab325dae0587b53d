#include "gpu/cuda/enter.h"
#include "gpu/cuda/linear_kernels.h"

namespace quire::gpu {

BlockTable block_kernels() { return block_table(FillEntries()); }

}  // namespace quire::gpu
