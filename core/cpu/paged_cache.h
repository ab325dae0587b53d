// K and V of all blocks, in groups of 16 tokens, the byte tails of the blocks, and the open groups of int4.
// Shape   [layer][block][kv head][P/16] groups; kv_codec.h says what a group is. An open group is [layer][kv head][16
//         tokens] of k | v in f32; behind the layers lies one more, the group of the layer at hand as the step found it.
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
  std::size_t bytes() const override { return memory_.bytes() + tails_.bytes() + open_.bytes(); }
  std::size_t block_bytes() const override { return shape_.all_layers() * layer_bytes_ + shape_.tail_bytes; }

  const GroupCodec& codec() const { return codec_; }
  // The 16 tokens that hold `offset` of a block.
  const std::byte* group(std::uint32_t layer, BlockId block, std::uint32_t head, std::uint32_t offset) const {
    return layer_start(layer, block) + (std::size_t{head} * shape_.block_tokens + offset) / 16 * codec_.bytes();
  }
  std::byte* group(std::uint32_t layer, BlockId block, std::uint32_t head, std::uint32_t offset) {
    return layer_start(layer, block) + (std::size_t{head} * shape_.block_tokens + offset) / 16 * codec_.bytes();
  }

  // k | v of token `lane`. layer_as_found(): of whichever layer rope_store() met last.
  float* open_row(std::uint32_t open_group, std::uint32_t layer, std::uint32_t head, std::uint32_t lane) {
    return open_.floats() + open_row_index(open_group, layer, head, lane) * 2 * shape_.head_dim;
  }
  const float* open_row(std::uint32_t open_group, std::uint32_t layer, std::uint32_t head, std::uint32_t lane) const {
    return open_.floats() + open_row_index(open_group, layer, head, lane) * 2 * shape_.head_dim;
  }
  std::uint32_t layer_as_found() const { return shape_.all_layers(); }
  void copy_open_group(std::uint32_t from, std::uint32_t to);

  // Whole blocks: all layers and the byte tail.
  void copy(BlockId from, BlockId to);
  // K and V of one row, by slot: all layers.
  void copy_row(std::uint32_t from, std::uint32_t to);
  void poison(BlockId block);
  void read(BlockId block, std::span<std::byte> out) const;
  void write(BlockId block, std::span<const std::byte> bytes);

  std::span<std::byte> tail(BlockId block);
  std::span<const std::byte> tail(BlockId block) const;

 private:
  std::size_t open_row_index(std::size_t open_group, std::uint32_t layer, std::uint32_t head,
                             std::uint32_t lane) const {
    const std::size_t layers = std::size_t{shape_.all_layers()} + 1;
    return ((open_group * layers + layer) * shape_.num_kv_heads + head) * backend::kGroupTokens + lane;
  }
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
  Memory open_;   // [num_open_groups][layers + 1][kv head][16][2 D] f32
};

}  // namespace quire::cpu
