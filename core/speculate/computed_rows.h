// Content of a drafter's own cache by slot: the hash of all tokens that the slot's row is a function of. The hash alone
// says whether a slot has the wanted row, so nothing has to be reported when a sequence ends, is preempted or starts
// with blocks that other sequences filled.
// Shape   slot = block id * P + offset in the block; 8 bytes a slot.
// Owner   DraftCache, StoredRows.
// Thread  engine. Allocates only in the constructor.
// Source  ours.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/speculate/token_chain.h"

namespace quire::speculate {

// chained(); for a draft model's row: over all tokens up to and including its own.
using RowHash = std::uint64_t;
inline constexpr RowHash kNoRow = 0;

class ComputedRows {
 public:
  ComputedRows(std::uint32_t num_blocks, std::uint32_t block_tokens)
      : block_tokens_(block_tokens), rows_(std::size_t{num_blocks} * block_tokens, kNoRow) {}

  static constexpr std::uint64_t bytes_per_block(std::uint32_t block_tokens) {
    return std::uint64_t{block_tokens} * sizeof(RowHash);
  }

  RowHash at(std::uint32_t slot) const { return rows_[slot]; }
  bool has(std::uint32_t slot, RowHash hash) const { return rows_[slot] == hash; }
  void store(std::uint32_t slot, RowHash hash) { rows_[slot] = hash; }
  void copy_row(std::uint32_t from, std::uint32_t to) { rows_[to] = rows_[from]; }
  void copy_block(BlockId from, BlockId to) { std::copy_n(begin_of(from), block_tokens_, begin_of(to)); }
  void forget_block(BlockId block) { std::fill_n(begin_of(block), block_tokens_, kNoRow); }

 private:
  std::vector<RowHash>::iterator begin_of(BlockId block) {
    return rows_.begin() + static_cast<std::ptrdiff_t>(std::size_t{block.value} * block_tokens_);
  }

  std::uint32_t block_tokens_;
  std::vector<RowHash> rows_;  // [slots]
};

}  // namespace quire::speculate
