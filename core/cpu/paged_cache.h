// K and V of all blocks, in groups of 16 tokens, and the byte tails of the blocks.
// Shape   [layer][block][kv head][P/16] groups; kv_codec.h says what a group is.
// Owner   whoever asked Ops to make it.
// Thread  engine; different tokens may be stored by different workers of the team.
// Fails   StartError: out of memory. A block that is not there is our bug: CHECK.
// Source  PagedAttention (Kwon et al. 2023); K transposed by groups of 16 tokens is ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend/tensors.h"
#include "core/base/ids.h"
#include "core/cpu/kv_codec.h"
#include "core/cpu/memory.h"

namespace quire::cpu {

class PagedCache final : public backend::KvCache {
 public:
  explicit PagedCache(const backend::KvShape& shape);

  const backend::KvShape& shape() const override { return shape_; }
  std::size_t bytes() const override { return memory_.bytes() + tails_.bytes(); }
  std::size_t block_bytes() const override { return shape_.all_layers() * layer_bytes_ + shape_.tail_bytes; }

  const GroupCodec& codec() const { return codec_; }
  // The 16 tokens that hold `offset` of a block.
  const std::byte* group(std::uint32_t layer, BlockId block, std::uint32_t head, std::uint32_t offset) const {
    return layer_start(layer, block) + (std::size_t{head} * shape_.block_tokens + offset) / 16 * codec_.bytes();
  }
  std::byte* group(std::uint32_t layer, BlockId block, std::uint32_t head, std::uint32_t offset) {
    return layer_start(layer, block) + (std::size_t{head} * shape_.block_tokens + offset) / 16 * codec_.bytes();
  }

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
  GroupCodec codec_;
  std::size_t layer_bytes_;  // of a block: all heads
  Memory memory_;
  Memory tails_;  // [block][tail_bytes]
};

}  // namespace quire::cpu
