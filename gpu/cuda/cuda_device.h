// One CUDA device and one stream of it.
// Thread  make_cuda_device(): any, while starting; the device is current on the engine thread from its first call on.
// Fails   make_cuda_device(): StartError, there is no driver, no such device, or one that this build has no code for.
#pragma once

#include <memory>

#include "gpu/runtime/device.h"

namespace quire::gpu {

std::unique_ptr<Device> make_cuda_device(int number = 0);

}  // namespace quire::gpu
