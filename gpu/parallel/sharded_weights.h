// Weights of a checkpoint as ranks have them, in host memory: what a file of packed weights keeps.
// Shape   a head of 256 bytes, which says how the weight is cut; then what each rank's ops call packed, in the order of ranks. A weight that
//         is whole on every rank is there once.
// Thread  any; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/backend/tensors.h"
#include "gpu/parallel/shares.h"

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
                              std::span<const std::span<const float>> biases, backend::Quantize quantize,
                              std::uint32_t num_ranks);

struct PackedParts {
  CutHead head;
  backend::WeightShape of_rank;
  std::vector<std::span<const std::byte>> ranks;  // into the bytes
};
// Nothing: those bytes are no weight of that shape, cut for so many ranks.
std::optional<PackedParts> parts_of(const backend::WeightShape& shape, std::span<const std::byte> bytes,
                                    std::uint32_t num_ranks);

}  // namespace quire::gpu
