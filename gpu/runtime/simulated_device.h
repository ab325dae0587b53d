// A GPU that is none: its memory is the host's and its kernels run in the simulator. For tests, and to look at a kernel.
// Shape   memory begins as NaN; there are 8 GiB of it, taken from the host as they are asked for.
// Thread  one at a time; everything has happened when a call returns.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/runtime/device.h"

namespace quire::gpu {

// `seed`: in which order the threads of a block take turns.
std::unique_ptr<Device> make_simulated_device(std::uint64_t seed = 1);

}  // namespace quire::gpu
