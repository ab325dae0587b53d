// CUDA devices, each with one stream.
// Thread  make_cuda_device(): any, while starting. The device becomes current on the engine thread with its first call
//         there.
// Fails   both: StartError that names the failed call, if there is no driver, no such device, or no code for it in this
//         build. In a program built without CUDA (cuda_absent.cc) always.
#pragma once

#include <memory>
#include <span>

#include "gpu/runtime/device.h"
#include "gpu/runtime/ranks.h"

namespace quire::gpu {

bool has_cuda();                  // true: this program was built with CUDA
int num_cuda_devices() noexcept;  // 0 in a program without CUDA, or without a driver

std::unique_ptr<Device> make_cuda_device(int number = 0);

// One rank per number; equal numbers are several streams of one device. Different devices need access to each other's
// memory.
Ranks make_cuda_ranks(std::span<const int> numbers);

}  // namespace quire::gpu
