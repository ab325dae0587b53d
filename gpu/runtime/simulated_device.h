// Simulated GPUs: their memory is the host's, and their kernels run in the simulator. For tests, and for debugging a
// kernel.
//   A program links one of two: gpu/simulated, or simulated_absent.cc, whose functions throw StartError.
// Shape   memory begins as NaN; there are 8 GiB, allocated from the host on demand.
// Thread  one at a time.
// Fails   a call that is not allowed during capture is our bug: CHECK. So is a kernel of one rank that waits for a
//         kernel never queued on another: on real devices both would hang.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/runtime/device.h"
#include "gpu/runtime/ranks.h"

namespace quire::gpu {

// Time at which queued work runs. kAtOnce: before the call returns. kLate: not before something waits for it, as a real
// device may do. kEarly: before the call returns, and kernels start before the previous one has ended (if
// Device::let_kernels_overlap allows it): an access to memory that is not constant before the dependent launch wait
// ends the process.
enum class Pace { kAtOnce, kLate, kEarly };

// seed: determines the order in which threads of a block run.
std::unique_ptr<Device> make_simulated_device(std::uint64_t seed = 1, Pace pace = Pace::kAtOnce);

// Ranks that access each other's memory, all kLate. Kernels that wait for peers (Kernel::kMeetsPeers) run when the
// queue of every rank has come to its own, their threads interleaved.
Ranks make_simulated_ranks(std::uint32_t count, std::uint64_t seed = 1);

}  // namespace quire::gpu
