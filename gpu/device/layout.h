// Where things lie in device memory, as functions of their indices: the same for whoever packs on the host and for kernels.
// Shape   letters as in core/backend/tensors.h. Offsets are in elements unless they say bytes.
//   weights, and rows that they multiply: weight_layout.h
//   K and V  groups of 16 positions by layer, block and kv head: K [D][16], then V [16][D]
//   rows     [rows][width]
// Thread  any; pure.
// Source  ours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/backend/tensors.h"
#include "gpu/device/matrix.h"

namespace quire::gpu {

struct KvLayout {
  std::uint32_t num_blocks = 0;
  std::uint32_t num_kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t block_tokens = 0;

  static constexpr std::uint32_t kGroup = backend::kGroupTokens;

  constexpr std::size_t group_size() const { return std::size_t{2} * kGroup * head_dim; }
  // Of a layer's block.
  constexpr std::size_t block_size() const { return block_tokens / kGroup * num_kv_heads * group_size(); }
  constexpr std::size_t block_at(std::uint32_t layer, std::uint32_t block) const {
    return (std::size_t{layer} * num_blocks + block) * block_size();
  }
  constexpr std::size_t group_at(std::uint32_t layer, std::uint32_t head, std::uint32_t slot) const {
    const std::uint32_t offset = slot % block_tokens;
    return block_at(layer, slot / block_tokens) + (head * (block_tokens / kGroup) + offset / kGroup) * group_size();
  }
  constexpr std::size_t k_at(std::uint32_t layer, std::uint32_t head, std::uint32_t slot, std::uint32_t d) const {
    return group_at(layer, head, slot) + std::size_t{d} * kGroup + slot % kGroup;
  }
  constexpr std::size_t v_at(std::uint32_t layer, std::uint32_t head, std::uint32_t slot, std::uint32_t d) const {
    return group_at(layer, head, slot) + std::size_t{kGroup} * head_dim + std::size_t{slot % kGroup} * head_dim + d;
  }
};

}  // namespace quire::gpu
