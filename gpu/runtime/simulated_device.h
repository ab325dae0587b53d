// A GPU that is none: its memory is the host's and its kernels run in the simulator. For tests, and to look at a kernel.
// Shape   memory begins as NaN; there are 8 GiB of it, taken from the host as they are asked for.
// Thread  one at a time.
// Fails   what must not be asked for while a step is captured is our bug: CHECK.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/runtime/device.h"

namespace quire::gpu {

// When what was asked for happens: before the call returns, or not before somebody waits for it, as a real device may. kEarly: before
// the call returns, and kernels begin before their turn (where they may, Device::let_kernels_overlap): what is not constant they must
// not touch until then, or the process ends.
enum class Pace { kAtOnce, kLate, kEarly };

// `seed`: in which order the threads of a block take turns.
std::unique_ptr<Device> make_simulated_device(std::uint64_t seed = 1, Pace pace = Pace::kAtOnce);

}  // namespace quire::gpu
