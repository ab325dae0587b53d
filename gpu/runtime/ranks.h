// Devices of a tensor-parallel model, one per rank, in one process: several GPUs, or several streams of one.
//   Ranks access each other's memory by the pointers that allocate() returned: over NVLink or PCIe, or because the
//   memory is the same.
// Owner   the sharded ops; the rendezvous outlives the devices.
// Thread  engine, after start. Nothing waits for a rank before all ranks have been given what it waits for: a kernel of
//         one may poll for data that another has still to post.
// Source  ours.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gpu/runtime/device.h"

namespace quire::gpu {

// A point that the queues of all ranks reach together.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // `call` calls another library for each rank, on the rank's queue (cudaStream_t; null in the simulator). The call
  // takes effect when all queues have come to it.
  virtual void meet(std::function<void(std::span<void* const> queues)> call) = 0;
};

struct Ranks {
  std::unique_ptr<Rendezvous> rendezvous;
  std::vector<std::unique_ptr<Device>> devices;
};

}  // namespace quire::gpu
