// Replaces cuda_device.cc in builds without nvcc.
#include "core/base/start_error.h"
#include "gpu/cuda/cuda_device.h"

namespace quire::gpu {
namespace {

constexpr const char* kBuiltWithout = "this program was built without CUDA (preset cuda-release)";

}  // namespace

bool has_cuda() { return false; }
int num_cuda_devices() noexcept { return 0; }

std::unique_ptr<Device> make_cuda_device(int /*number*/) { throw StartError(kBuiltWithout); }

Ranks make_cuda_ranks(std::span<const int> /*numbers*/) { throw StartError(kBuiltWithout); }

}  // namespace quire::gpu
