// K and V of all blocks, in groups of 16 tokens, and the byte tails of the blocks.
// Shape   [layer][block][kv head][P/16] groups; a group is K as one panel (a weight's panel with 16 tokens as outputs and
//         D as k), then V as [16][D padded to 16], its padding zero where a row was stored.
// Owner   whoever asked Ops to make it.
// Thread  engine; store() of different tokens by the team.
// Fails   StartError: out of memory. A block that is not there is our bug: CHECK.
// Source  PagedAttention (Kwon et al. 2023); K transposed by groups of 16 tokens is ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend/tensors.h"
#include "core/base/ids.h"
#include "core/cpu/memory.h"

namespace quire::cpu {

class PagedCache final : public backend::KvCache {
 public:
  explicit PagedCache(const backend::KvShape& shape);

  const backend::KvShape& shape() const override { return shape_; }
  std::size_t bytes() const override { return memory_.bytes() + tails_.bytes(); }
  std::size_t block_bytes() const override { return shape_.all_layers() * layer_bytes_ + shape_.tail_bytes; }

  std::uint32_t padded_head() const { return (shape_.head_dim + 15) / 16 * 16; }
  std::size_t v_row_bytes() const { return padded_head() * backend::bytes_of(shape_.dtype); }
  // The 16 tokens that hold `offset` of a block: K's panel, V's first row.
  const std::byte* k_group(std::uint32_t layer, BlockId block, std::uint32_t head, std::uint32_t offset) const {
    return layer_start(layer, block) + (std::size_t{head} * shape_.block_tokens + offset) / 16 * group_bytes_;
  }
  const std::byte* v_group(std::uint32_t layer, BlockId block, std::uint32_t head, std::uint32_t offset) const {
    return k_group(layer, block, head, offset) + k_bytes_;
  }

  // One token's key and value, in the cache's type (bf16: round to nearest even).
  void store(std::uint32_t layer, BlockId block, std::uint32_t head, std::uint32_t offset, const float* k,
             const float* v);

  // Whole blocks: all layers and the byte tail.
  void copy(BlockId from, BlockId to);
  void poison(BlockId block);
  void read(BlockId block, std::span<std::byte> out) const;
  void write(BlockId block, std::span<const std::byte> bytes);

  std::span<std::byte> tail(BlockId block);
  std::span<const std::byte> tail(BlockId block) const;

 private:
  const std::byte* layer_start(std::size_t layer, BlockId block) const {
    return memory_.data() + (layer * shape_.num_blocks + block.value) * layer_bytes_;
  }
  std::byte* layer_start(std::size_t layer, BlockId block) {
    return memory_.data() + (layer * shape_.num_blocks + block.value) * layer_bytes_;
  }

  backend::KvShape shape_;
  std::size_t k_bytes_;      // K of 16 tokens and a head
  std::size_t group_bytes_;  // K and V of 16 tokens and a head
  std::size_t layer_bytes_;  // of a block: all heads
  Memory memory_;
  Memory tails_;  // [block][tail_bytes]
};

}  // namespace quire::cpu
