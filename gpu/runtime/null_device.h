// A GPU that runs nothing: memory is address space, copies and kernels are looked at and forgotten, and whatever
// comes back from it is 0. Real shapes of models cost it no time, so that each size, limit and launch of a server or
// a stage is checked without a device. It comes with gpu/simulated; programs without that have a function that throws
// StartError.
// Shape   141 GiB of memory, as an H200 has. A copy lies within one piece of it; a launch keeps to what sm_90 takes.
// Thread  one at a time.
// Fails   what a device would refuse, or would do damage, is our bug: CHECK. allocate(): StartError.
#pragma once

#include <memory>

#include "gpu/runtime/device.h"

namespace quire::gpu {

std::unique_ptr<Device> make_null_device();

}  // namespace quire::gpu
