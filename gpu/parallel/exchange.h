// What ranks tell each other between ops, queued on all of them at once: gpu/kernels/exchange.h has the kernels and
// their order. A message that is longer than a box goes by the library, where there is one, else in pieces, one kernel
// each. What is summed is so that the library's order makes no difference (sharded_ops.h).
// Shape   x, parts and out: a pointer a rank, to memory of that rank.
// Owner   ShardedOps; devices and rendezvous outlive it. Nothing is allocated after make_room().
// Thread  engine.
// Fails   StartError from the constructor and make_room(): no memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gpu/parallel/nccl.h"
#include "gpu/runtime/ranks.h"

namespace quire::gpu {

struct ExchangeOptions {
  std::uint32_t box = 64 * 1024;  // LL words: 256 KiB of numbers
  std::uint32_t first_epoch = kFirstEpoch;
};

class Exchange {
 public:
  Exchange(std::span<Device* const> ranks, const ExchangeOptions& options = {}, Rendezvous* rendezvous = nullptr,
           std::unique_ptr<Nccl> library = nullptr);

  // While starting: so many numbers may be gathered at a time, of all ranks together.
  void make_room(std::size_t count);

  // x[i] becomes, on every rank, the sum of all ranks', in their order.
  void sum(std::span<float* const> x, std::size_t count);
  // out[rows, width · ranks] becomes, or grows by, what the ranks have in part[rows, width].
  void gather(std::span<const float* const> parts, const Columns& columns, std::uint32_t rows, bool adds,
              std::span<float* const> out);

 private:
  struct Rank {
    Device* device;
    DeviceMemory boxes;
    DeviceMemory epoch;
    DeviceMemory arrived;
    DeviceMemory gathered;  // by the library: rank by rank
  };
  bool goes_by_library(std::size_t count) const { return library_ != nullptr && count > options_.box; }
  void gather_by_library(std::span<const float* const> parts, const Columns& columns, std::size_t count, bool adds,
                         std::span<float* const> out);
  void in_pieces(std::size_t count, const std::function<void(Rank& rank, const ExchangeArgs& args)>& start);

  const ExchangeOptions options_;
  Rendezvous* const rendezvous_;
  const std::unique_ptr<Nccl> library_;
  std::vector<Rank> ranks_;
};

}  // namespace quire::gpu
