// Packed weights of all ranks, in host memory: what a file of packed weights holds.
// Shape   a header of 256 bytes, which says how the weight is cut; then the packed bytes of each rank's ops, in the
//         order of ranks. A weight that is whole on every rank is there once.
// Thread  any; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/backend/tensors.h"
#include "gpu/parallel/shards.h"

namespace quire::gpu {

struct CutHead {
  static constexpr std::size_t kBytes = 256;
  std::uint32_t num_ranks = 0;
  std::uint32_t num_matrices = 0;  // 0: whole on every rank
  std::uint32_t outputs[Columns::kMost] = {};

  bool is_cut() const { return num_matrices != 0; }
  std::span<const std::uint32_t> matrices() const { return {outputs, num_matrices}; }
};

struct PackedForRanks {
  backend::WeightShape shape;
  std::vector<std::byte> bytes;
};
PackedForRanks pack_for_ranks(std::span<const backend::HostMatrix> matrices,
                              std::span<const std::span<const float>> biases, std::optional<backend::Format> quantize,
                              std::uint32_t num_ranks);

struct PackedParts {
  CutHead head;
  backend::WeightShape of_rank;
  std::vector<std::span<const std::byte>> ranks;  // views of the given bytes
};
// nullopt: the bytes are not a weight of that shape, cut for that many ranks.
std::optional<PackedParts> parts_of(const backend::WeightShape& shape, std::span<const std::byte> bytes,
                                    std::uint32_t num_ranks);

}  // namespace quire::gpu
