// A batch of sequences of equal shape, for ops that are run alone: each sequence has its own blocks, and its last rows
// are in the step.
// Shape   sequence s holds the blocks [s · B, (s + 1) · B), B = blocks_each(). A row's token id is its index.
// Owner   a value; view() borrows from it.
// Thread  any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "core/backend/ops.h"

namespace quire::gpu::measure {

class StepBatch {
 public:
  static constexpr std::uint32_t kBlockTokens = 16;

  StepBatch(std::uint32_t num_sequences, std::uint32_t rows_each, std::uint32_t positions)
      : blocks_each_((positions + kBlockTokens - 1) / kBlockTokens) {
    for (std::uint32_t s = 0; s < num_sequences; ++s) {
      backend::SequenceRows rows;
      rows.first_row = static_cast<std::uint32_t>(tokens_.size());
      rows.num_rows = rows_each;
      rows.first_position = positions - rows_each;
      rows.first_table = s * blocks_each_;
      rows.num_table = blocks_each_;
      for (std::uint32_t i = 0; i < blocks_each_; ++i) tables_.push_back(BlockId(s * blocks_each_ + i));
      for (std::uint32_t p = rows.first_position; p < positions; ++p) {
        tokens_.push_back(static_cast<TokenId>(tokens_.size()));
        positions_.push_back(p);
        slots_.push_back(s * blocks_each_ * kBlockTokens + p);
      }
      sequences_.push_back(rows);
    }
  }
  std::uint32_t blocks_each() const { return blocks_each_; }
  std::uint32_t num_blocks() const { return static_cast<std::uint32_t>(tables_.size()); }
  backend::Batch view() const {
    return {
        .tokens = tokens_, .positions = positions_, .slots = slots_, .sequences = sequences_, .block_tables = tables_};
  }

 private:
  std::uint32_t blocks_each_;
  std::vector<TokenId> tokens_;
  std::vector<std::uint32_t> positions_;
  std::vector<std::uint32_t> slots_;
  std::vector<backend::SequenceRows> sequences_;
  std::vector<BlockId> tables_;
};

}  // namespace quire::gpu::measure
