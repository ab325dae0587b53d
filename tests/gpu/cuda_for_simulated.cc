// gpu_device_test: what tests take for the simulated device is the first CUDA device. No threads take turns there: the seed is unused.
#include "gpu/cuda/cuda_device.h"
#include "gpu/runtime/simulated_device.h"

namespace quire::gpu {

std::unique_ptr<Device> make_simulated_device(std::uint64_t /*seed*/) { return make_cuda_device(); }

}  // namespace quire::gpu
