// In place of cuda_device.cc where nvcc built nothing.
#include "core/base/start_error.h"
#include "gpu/cuda/cuda_device.h"

namespace quire::gpu {

bool has_cuda() { return false; }

std::unique_ptr<Device> make_cuda_device(int /*number*/) {
  throw StartError("this program was built without CUDA (preset cuda-release)");
}

}  // namespace quire::gpu
