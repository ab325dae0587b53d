// GPUs that are none: their memory is the host's and their kernels run in the simulator. For tests, and to look at a kernel.
//   A program links one of two: gpu/simulated, or simulated_absent.cc, whose functions throw StartError.
// Shape   memory begins as NaN; there are 8 GiB of it, taken from the host as they are asked for.
// Thread  one at a time.
// Fails   what must not be asked for while a step is captured is our bug: CHECK. So it is where a rank's kernel waits for one that
//         another was never asked to run: on real devices nobody would go on.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/runtime/device.h"
#include "gpu/runtime/ranks.h"

namespace quire::gpu {

// When what was asked for happens: before the call returns, or not before somebody waits for it, as a real device may. kEarly: before
// the call returns, and kernels begin before their turn (where they may, Device::let_kernels_overlap): what is not constant they must
// not touch until then, or the process ends.
enum class Pace { kAtOnce, kLate, kEarly };

// `seed`: in which order the threads of a block take turns.
std::unique_ptr<Device> make_simulated_device(std::uint64_t seed = 1, Pace pace = Pace::kAtOnce);

// Devices that reach each other's memory, all late: kernels that meet (Kernel::kMeetsPeers) run when the queue of each has come to
// its own, threads of all of them in turns.
Ranks make_simulated_ranks(std::uint32_t count, std::uint64_t seed = 1);

}  // namespace quire::gpu
