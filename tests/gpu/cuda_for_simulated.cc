// gpu_device_test: what tests take for the simulated device is the first CUDA device, and for ranks so many streams of it, side by side.
// It takes no seed and has a pace of its own.
#include <vector>

#include "gpu/cuda/cuda_device.h"
#include "gpu/runtime/simulated_device.h"

namespace quire::gpu {

std::unique_ptr<Device> make_simulated_device(std::uint64_t /*seed*/, Pace /*pace*/) { return make_cuda_device(); }
Ranks make_simulated_ranks(std::uint32_t count, std::uint64_t /*seed*/) {
  return make_cuda_ranks(std::vector<int>(count, 0));
}

}  // namespace quire::gpu
