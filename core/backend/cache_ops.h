// Operations on the KV cache between steps: whole blocks, and single rows, in call order.
// Thread  engine.
// Fails   a block or slot that is not there is our bug: CHECK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/backend/tensors.h"
#include "core/base/ids.h"

namespace quire::backend {

struct BlockCopy {
  BlockId from;
  BlockId to;
};

struct RowCopy {  // from and to are slots of this group's blocks
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t group = 0;
};

class CacheOps {
 public:
  virtual ~CacheOps() = default;

  virtual void copy_blocks(KvCache& cache, std::span<const BlockCopy> copies) = 0;
  // K and V of single rows in all layers of the group, as stored, in call order. Not for int4.
  virtual void copy_rows(KvCache& cache, std::span<const RowCopy> copies) = 0;
  // Fills the block's K and V so that every read gives NaN until it is stored again.
  virtual void poison_block(KvCache& cache, BlockId block) = 0;
  // The block's content as bytes [block_bytes], valid for write_block() into a cache of the same shape but for
  // num_blocks.
  virtual void read_block(const KvCache& cache, BlockId block, std::span<std::byte> out) = 0;
  virtual void write_block(KvCache& cache, BlockId block, std::span<const std::byte> bytes) = 0;
  // int4: copies a residual group, when a sequence is forked.
  virtual void copy_residual_group(KvCache& cache, std::uint32_t from, std::uint32_t to) = 0;
};

}  // namespace quire::backend
