// What ranks tell each other between ops, queued on all of them at once: gpu/kernels/exchange.h has the kernels and their order. A message
// that is longer than a box goes in pieces, one kernel each.
// Shape   x, parts and out: a pointer a rank, to memory of that rank.
// Owner   ShardedOps; the devices outlive it. Nothing is allocated after the constructor.
// Thread  engine.
// Fails   StartError from the constructor: no memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "gpu/runtime/device.h"

namespace quire::gpu {

struct ExchangeOptions {
  std::uint32_t box = 64 * 1024;  // letters: 256 KiB of numbers
  std::uint32_t first_epoch = kFirstEpoch;
};

class Exchange {
 public:
  Exchange(std::span<Device* const> ranks, const ExchangeOptions& options = {});

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
  };
  void in_pieces(std::size_t count, const std::function<void(Rank& rank, const ExchangeArgs& args)>& start);

  const ExchangeOptions options_;
  std::vector<Rank> ranks_;
};

}  // namespace quire::gpu
