// gpu_device_test: what tests take for the simulated device is the first CUDA device, which takes no seed and has a pace of its own.
#include "gpu/cuda/cuda_device.h"
#include "gpu/runtime/simulated_device.h"

namespace quire::gpu {

std::unique_ptr<Device> make_simulated_device(std::uint64_t /*seed*/, Pace /*pace*/) { return make_cuda_device(); }

}  // namespace quire::gpu
