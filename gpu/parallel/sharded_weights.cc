#include "gpu/parallel/sharded_weights.h"

#include <algorithm>
#include <cstring>

#include "gpu/pack.h"
#include "gpu/tensors.h"

namespace quire::gpu {

using namespace backend;

PackedForRanks pack_for_ranks(std::span<const HostMatrix> matrices, std::span<const std::span<const float>> biases,
                              std::optional<Format> quantize, std::uint32_t num_ranks) {
  CutHead head;
  head.num_ranks = num_ranks;
  std::vector<std::uint32_t> outputs;
  for (const HostMatrix& matrix : matrices) outputs.push_back(matrix.n);
  if (is_cut(outputs, num_ranks)) {
    head.num_matrices = static_cast<std::uint32_t>(outputs.size());
    std::ranges::copy(outputs, head.outputs);
  }
  PackedForRanks out;
  out.bytes.resize(CutHead::kBytes);
  std::memcpy(out.bytes.data(), &head, sizeof(head));
  const std::uint32_t num_parts = head.is_cut() ? num_ranks : 1;
  for (std::uint32_t rank = 0; rank < num_parts; ++rank) {
    std::vector<HostMatrix> of_rank(matrices.begin(), matrices.end());
    std::vector<std::span<const float>> biases_of_rank(biases.begin(), biases.end());
    for (std::size_t i = 0; i < head.num_matrices; ++i) {
      const Shard shard = shard_of(outputs[i], rank, num_ranks);
      const auto* data = static_cast<const std::byte*>(matrices[i].data);
      of_rank[i].data = data + std::size_t{shard.first} * row_bytes(matrices[i].format, matrices[i].k);
      of_rank[i].n = shard.count;
      if (!biases.empty() && !biases[i].empty()) biases_of_rank[i] = biases[i].subspan(shard.first, shard.count);
    }
    const Packed packed = pack(of_rank, biases_of_rank, quantize);
    out.bytes.insert(out.bytes.end(), packed.bytes.begin(), packed.bytes.end());
    out.shape = packed.shape;
  }
  out.shape.n *= num_parts;
  return out;
}

std::optional<PackedParts> parts_of(const WeightShape& shape, std::span<const std::byte> bytes,
                                    std::uint32_t num_ranks) {
  PackedParts parts;
  if (bytes.size() < CutHead::kBytes) return std::nullopt;
  std::memcpy(&parts.head, bytes.data(), sizeof(parts.head));
  const CutHead& head = parts.head;
  if (head.num_ranks != num_ranks || head.num_matrices > Columns::kMost) return std::nullopt;
  parts.of_rank = shape;
  if (head.is_cut()) {
    if (!is_cut(head.matrices(), num_ranks)) return std::nullopt;
    parts.of_rank.n = columns_of(head.matrices(), num_ranks).width();
    if (parts.of_rank.n * num_ranks != shape.n) return std::nullopt;
  }
  const std::size_t each = packed_places(parts.of_rank).end;
  if (bytes.size() != CutHead::kBytes + (head.is_cut() ? num_ranks : 1) * each) return std::nullopt;
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank) {
    parts.ranks.push_back(bytes.subspan(CutHead::kBytes + (head.is_cut() ? rank : 0) * each, each));
  }
  return parts;
}

}  // namespace quire::gpu
