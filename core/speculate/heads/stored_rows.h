// Contents of a draft head's cache: by slot, a hash of everything that the row depends on. A head's row depends on the
// next token, so the last row of a block found in the prefix cache may have been computed for another next token; the
// hash shows it. To compute that row again takes the target's feature there, so each block's last feature is stored.
// Shape   num_blocks · P slots; a feature of E numbers per block; the same for host blocks.
// Hashes  chain[0] = kChainRoot; chain[i + 1] hashes chain[i] and token i. A feature at p depends on tokens 0..p and
//         has chain[p + 1]; its row depends on the next token too and has chain[p + 2]. 0: nothing is stored. A
//         collision costs a worse draft.
// Owner   the drafter, which moves the device memory itself; track() only follows.
// Thread  engine. Nothing allocates.
// Source  ours.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/flow/step_plan.h"
#include "core/speculate/computed_rows.h"
#include "core/speculate/token_chain.h"

namespace quire::speculate {

class StoredRows {
 public:
  StoredRows(std::uint32_t num_blocks, std::uint32_t block_tokens, std::uint32_t num_host_blocks, std::uint32_t hidden);
  static constexpr std::uint64_t bytes_per_block(std::uint32_t block_tokens, std::uint32_t hidden) {
    return ComputedRows::bytes_per_block(block_tokens) + sizeof(RowHash) + block_tokens * sizeof(std::uint32_t) +
           std::uint64_t{hidden} * sizeof(float);
  }

  RowHash at(std::uint32_t slot) const { return rows_.at(slot); }
  void store(std::uint32_t slot, RowHash hash) { rows_.store(slot, hash); }

  // Sequences with equal texts may fill one block in one step: of the batch's rows for a slot, only the first is
  // stored.
  void begin_batch() { ++batch_; }
  bool is_first(std::uint32_t slot) { return std::exchange(batches_[slot], batch_) != batch_; }

  // Memory for the feature of the block's last row, stored under this hash.
  std::span<float> keep(BlockId block, RowHash hash);
  // The stored feature of the block's last row; empty if there is none, or one with another hash.
  std::span<const float> kept(BlockId block, RowHash hash) const;

  // Follows a block operation, before the device runs it. Copies of rows are not reported: head rows are stored in
  // their final slots.
  void track(const flow::BlockOp& op);

 private:
  void move(std::uint32_t from, std::uint32_t to);

  std::uint32_t num_blocks_;
  std::uint32_t hidden_;
  // Of blocks, then of host blocks.
  ComputedRows rows_;
  std::vector<RowHash> kept_;    // [blocks]
  std::vector<float> features_;  // [blocks, E]
  // Whole blocks only.
  std::vector<std::uint32_t> batches_;  // [slots] the last batch with a row for it
  std::uint32_t batch_ = 0;
};

}  // namespace quire::speculate
