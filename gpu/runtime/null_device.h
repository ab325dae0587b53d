// A device that runs nothing: memory is address space, copies and kernels are checked and dropped, and downloads give
// 0. Models of real shapes take no time on it, so that every size, limit and launch of a server or a measuring stage is
// checked without a GPU. It is part of gpu/simulated; in programs without that, make_null_device() throws StartError.
// Shape   141 GiB of memory, as an H200 has. A copy must lie within one allocation; a launch must keep sm_90's limits.
// Thread  one at a time.
// Fails   a call that a device would refuse, or that would do damage, is our bug: CHECK. allocate(): StartError.
#pragma once

#include <memory>

#include "gpu/runtime/device.h"

namespace quire::gpu {

std::unique_ptr<Device> make_null_device();

}  // namespace quire::gpu
