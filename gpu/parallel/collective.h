// Collectives between the ops of ranks, queued on all ranks at once; gpu/kernels/collective.h has the kernels and their
// order of sums. A message longer than a box goes through NCCL, if there is one, else in pieces, one kernel each. Sums
// are such that NCCL's order makes no difference (sharded_ops.h).
// Shape   x, parts and out: one pointer per rank, to memory of that rank.
// Owner   ShardedOps; devices and rendezvous outlive it. Nothing is allocated after make_room().
// Thread  engine.
// Fails   constructor and make_room(): StartError, out of memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gpu/parallel/nccl.h"
#include "gpu/runtime/ranks.h"

namespace quire::gpu {

struct CollectiveOptions {
  std::uint32_t box = 64 * 1024;  // LL words, whose payload is 256 KiB
  std::uint32_t first_epoch = kFirstEpoch;
};

class Collective {
 public:
  Collective(std::span<Device* const> ranks, const CollectiveOptions& options = {}, Rendezvous* rendezvous = nullptr,
             std::unique_ptr<Nccl> library = nullptr);

  // Called while starting: at most `count` numbers are gathered at a time, over all ranks.
  void make_room(std::size_t count);

  // All-reduce: x[i] becomes the sum over all ranks on every rank, added in the order of ranks, or in NCCL's.
  void sum(std::span<float* const> x, std::size_t count);
  // All-gather: out[rows, width · ranks] becomes, or is increased by, the ranks' part[rows, width].
  void gather(std::span<const float* const> parts, const Columns& columns, std::uint32_t rows, bool adds,
              std::span<float* const> out);

 private:
  struct Rank {
    Device* device;
    DeviceMemory boxes;
    DeviceMemory epoch;
    DeviceMemory arrived;
    DeviceMemory gathered;  // NCCL's result: rank by rank
  };
  bool goes_by_library(std::size_t count) const { return library_ != nullptr && count > options_.box; }
  void gather_by_library(std::span<const float* const> parts, const Columns& columns, std::size_t count, bool adds,
                         std::span<float* const> out);
  void in_pieces(std::size_t count, const std::function<void(Rank& rank, const CollectiveArgs& args)>& start);

  const CollectiveOptions options_;
  Rendezvous* const rendezvous_;
  const std::unique_ptr<Nccl> library_;
  std::vector<Rank> ranks_;
};

}  // namespace quire::gpu
