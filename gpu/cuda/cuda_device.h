// CUDA devices, a stream of each.
// Thread  make_cuda_device(): any, while starting; the device is current on the engine thread from its first call on.
// Fails   both: StartError, there is no driver, no such device, or one that this build has no code for; it names the
//         call that failed. In a program built without CUDA (cuda_absent.cc) always.
#pragma once

#include <memory>
#include <span>

#include "gpu/runtime/device.h"
#include "gpu/runtime/ranks.h"

namespace quire::gpu {

bool has_cuda();                  // whether this program was built with it
int num_cuda_devices() noexcept;  // 0 where it was not, or where there is no driver

std::unique_ptr<Device> make_cuda_device(int number = 0);

// A rank for each number; the same number again is another stream of the same device. Different devices have to reach each other's
// memory.
Ranks make_cuda_ranks(std::span<const int> numbers);

}  // namespace quire::gpu
