// Which slots of a drafter's own cache hold which row: by slot a hash of all tokens that the row is a function of. What stands
// there is a function of those alone, so nothing has to be told when a sequence ends, is sent back or begins with
// blocks of others: a slot has the row, or another, or none.
// Shape   slots block id * P + offset, as everywhere; 8 bytes each.
// Owner   DraftCache, StoredRows.
// Thread  engine. Nothing allocates after the constructor.
// Source  ours.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/speculate/token_chain.h"

namespace quire::speculate {

using RowHash = std::uint64_t;  // chained(); of a draft model's row: of the tokens up to its own and with that
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
