#include "gpu/cuda/enter.h"
#include "gpu/cuda/linear_kernels.h"

namespace quire::gpu {

LinearTable linear_kernels() { return linear_table(FillEntries()); }

}  // namespace quire::gpu
