// Builder of a backend::Batch for a drafter's step, sequence by sequence.
// Shape   as backend::Batch: the rows of a sequence together, their positions consecutive.
// Owner   a reusable value; allocates only for a larger step than any before. batch() borrows from it.
// Thread  any; one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "core/base/ids.h"
#include "core/sample/params.h"

namespace quire::speculate {

class RowBatch {
 public:
  void clear() {
    tokens_.clear();
    positions_.clear();
    slots_.clear();
    sequences_.clear();
    tables_.clear();
    kept_groups_.clear();
    logits_rows_.clear();
  }
  // Starts the sequence of the rows added next; add_block() may extend its table.
  void begin_sequence(std::span<const BlockId> table) {
    backend::SequenceRows sequence;
    sequence.first_row = num_rows();
    sequence.first_table = static_cast<std::uint32_t>(tables_.size());
    sequence.first_kept = static_cast<std::uint32_t>(kept_groups_.size());
    sequences_.push_back(sequence);
    for (const BlockId block : table) add_block(block);
  }
  void add_block(BlockId block) {
    tables_.push_back(block);
    ++sequences_.back().num_table;
  }
  // Appends the kept-groups word of the next 256-position span, where some earlier positions are not attended to
  // (core/backend/batch.h).
  void add_kept(std::uint16_t groups) {
    kept_groups_.push_back(groups);
    ++sequences_.back().num_kept;
  }
  void add_row(TokenId token, std::uint32_t position, std::uint32_t slot) {
    backend::SequenceRows& sequence = sequences_.back();
    if (sequence.num_rows++ == 0) sequence.first_position = position;
    tokens_.push_back(token);
    positions_.push_back(position);
    slots_.push_back(slot);
  }
  // Makes the row added last a logits row: sampled with `params`, or (second form) greedily with its `num` top
  // candidates.
  void add_logits_row(const sample::Params& params) {
    backend::LogitsRow logits_row;
    logits_row.row = num_rows() - 1;
    logits_row.position = positions_.back() + 1;
    logits_row.params = params;
    logits_rows_.push_back(logits_row);
  }
  void add_logits_row(std::uint32_t num) { add_logits_row({.temperature = 0.0f, .num_top = num}); }

  bool empty() const { return sequences_.empty(); }
  std::uint32_t num_sequences() const { return static_cast<std::uint32_t>(sequences_.size()); }
  std::uint32_t num_rows() const { return static_cast<std::uint32_t>(tokens_.size()); }
  std::uint32_t num_logits_rows() const { return static_cast<std::uint32_t>(logits_rows_.size()); }
  backend::Batch batch() const {
    return {.tokens = tokens_,
            .positions = positions_,
            .slots = slots_,
            .sequences = sequences_,
            .block_tables = tables_,
            .logits_rows = logits_rows_,
            .kept_groups = kept_groups_};
  }

 private:
  std::vector<TokenId> tokens_;
  std::vector<std::uint32_t> positions_;
  std::vector<std::uint32_t> slots_;
  std::vector<backend::SequenceRows> sequences_;
  std::vector<BlockId> tables_;
  std::vector<std::uint16_t> kept_groups_;
  std::vector<backend::LogitsRow> logits_rows_;
};

}  // namespace quire::speculate
