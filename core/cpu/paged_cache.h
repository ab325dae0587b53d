// K and V of all blocks, in groups of 16 tokens, and the residual groups of int4.
// Shape   [block][layer of its group] layers (KvLayer), which are [kv head][P/16] groups as in kv_codec.h; behind a
//         smaller group's layers the block is unused. A residual group is [layer][kv head][16 tokens] of k | v in f32;
//         one more layer behind the others is the current layer's group as the step found it.
// Owner   the caller of Ops that asked for it.
// Thread  engine; different tokens may be stored by different workers of the team.
// Fails   StartError: out of memory. A block number out of range is our bug: CHECK.
// Source  PagedAttention (Kwon et al. 2023); K transposed by groups of 16 tokens is ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/cache_ops.h"
#include "core/backend/tensors.h"
#include "core/base/ids.h"
#include "core/base/kv_constants.h"
#include "core/cpu/kv_codec.h"
#include "core/cpu/memory.h"

namespace quire::cpu {

class PagedCache final : public backend::KvCache {
 public:
  explicit PagedCache(const backend::KvShape& shape);

  const backend::KvShape& shape() const override { return shape_; }
  std::size_t bytes() const override { return memory_.bytes() + open_.bytes(); }
  std::size_t block_bytes() const override { return layout_.bytes; }

  const GroupCodec& codec(std::uint32_t layer) const { return codecs_[layer]; }
  // The group of 16 tokens that has `offset` of a block.
  const std::byte* group(std::uint32_t layer, BlockId block, std::uint32_t head, std::uint32_t offset) const {
    return start_of(block) + group_at(layer, head, offset);
  }
  std::byte* group(std::uint32_t layer, BlockId block, std::uint32_t head, std::uint32_t offset) {
    return start_of(block) + group_at(layer, head, offset);
  }

  // k | v of token `lane`, and the same as rope_store() found it: valid until it runs on the next layer.
  float* open_row(std::uint32_t residual_group, std::uint32_t layer, std::uint32_t head, std::uint32_t lane) {
    return open_.floats() + open_row_at(residual_group, layer, layer, head, lane);
  }
  const float* open_row(std::uint32_t residual_group, std::uint32_t layer, std::uint32_t head,
                        std::uint32_t lane) const {
    return open_.floats() + open_row_at(residual_group, layer, layer, head, lane);
  }
  float* found_row(std::uint32_t residual_group, std::uint32_t layer, std::uint32_t head, std::uint32_t lane) {
    return open_.floats() + open_row_at(residual_group, shape_.num_layers(), layer, head, lane);
  }
  const float* found_row(std::uint32_t residual_group, std::uint32_t layer, std::uint32_t head,
                         std::uint32_t lane) const {
    return open_.floats() + open_row_at(residual_group, shape_.num_layers(), layer, head, lane);
  }
  void copy_residual_group(std::uint32_t from, std::uint32_t to);

  // Whole blocks.
  void copy(BlockId from, BlockId to);
  // K and V of one row, by slot: all layers of the group.
  void copy_row(const backend::RowCopy& copy);
  void poison(BlockId block);
  void read(BlockId block, std::span<std::byte> out) const;
  void write(BlockId block, std::span<const std::byte> bytes);

 private:
  std::size_t group_at(std::uint32_t layer, std::uint32_t head, std::uint32_t offset) const {
    return layout_.offsets[layer] +
           (std::size_t{head} * shape_.block_tokens + offset) / kGroupTokens * codecs_[layer].bytes();
  }
  // `part`: the layer, or num_layers() for the layer as found.
  std::size_t open_row_at(std::size_t residual_group, std::uint32_t part, std::uint32_t layer, std::uint32_t head,
                          std::uint32_t lane) const {
    const std::size_t row = std::size_t{head} * kGroupTokens + lane;
    return (residual_group * (shape_.num_layers() + std::size_t{1}) + part) * open_floats_ +
           row * 2 * shape_.layers[layer].head_dim;
  }
  const std::byte* start_of(BlockId block) const { return memory_.data() + block.value * block_bytes(); }
  std::byte* start_of(BlockId block) { return memory_.data() + block.value * block_bytes(); }
  void poison(std::byte* begin, std::size_t bytes);

  backend::KvShape shape_;
  std::vector<GroupCodec> codecs_;  // [layers]
  backend::KvBlockLayout layout_;
  std::size_t open_floats_ = 0;  // of a residual group's layer: those of the largest
  Memory memory_;
  Memory open_;  // [num_residual_groups][layers + 1][kv head][16][2 D] f32
};

}  // namespace quire::cpu
