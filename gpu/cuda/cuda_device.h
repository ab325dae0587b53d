// One CUDA device and one stream of it.
// Thread  make_cuda_device(): any, while starting; the device is current on the engine thread from its first call on.
// Fails   make_cuda_device(): StartError, there is no driver, no such device, or one that this build has no code for; it names the
//         call that failed. In a program built without CUDA (cuda_absent.cc) always.
#pragma once

#include <memory>

#include "gpu/runtime/device.h"

namespace quire::gpu {

bool has_cuda();  // whether this program was built with it

std::unique_ptr<Device> make_cuda_device(int number = 0);

}  // namespace quire::gpu
