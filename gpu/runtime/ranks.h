// The devices of a tensor-parallel model, one a rank, in one process: as many GPUs, or as many streams of one.
//   Ranks reach each other's memory by the pointers that allocate() gave: over NVLink or PCIe, or because it is the
//   same.
// Owner   whoever runs the model; the rendezvous outlives the devices.
// Thread  engine, after start. Nobody waits for a rank before all have been asked for what it waits for: a kernel of
//         one may look for what another has still to say.
// Source  ours.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gpu/runtime/device.h"

namespace quire::gpu {

// What has to happen to all ranks at once.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // `call` asks something of another library, for each rank in its queue (cudaStream_t; null in the simulator): it
  // happens when all queues have come to it.
  virtual void meet(std::function<void(std::span<void* const> queues)> call) = 0;
};

struct Ranks {
  std::unique_ptr<Rendezvous> rendezvous;
  std::vector<std::unique_ptr<Device>> devices;
};

}  // namespace quire::gpu
