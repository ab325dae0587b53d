// What the slots of a draft head's cache hold: by slot, a hash of all that its row is a function of. A head's row looks one token
// ahead, so a block found in the prefix cache may end with a row that was made for another next token: here that shows. To
// make it again takes the target's feature there, which nobody computes twice: that of each block's last row is kept.
// Shape   num_blocks · P slots; as many features of E numbers as blocks; host blocks likewise.
// Hashes  chain[0] is the root; chain[i + 1] hashes chain[i] and token i. A feature at p depends on tokens 0..p: chain[p + 1].
//         Its row depends on the next token, too: chain[p + 2]. 0 is no hash: nothing was stored. Two texts that collide cost
//         a worse guess.
// Owner   the drafter. Device memory is its own business: this follows along.
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

  // Texts that said the same fill one block in one step: of the rows that a batch has for a slot, the first is stored.
  void begin_batch() { ++batch_; }
  bool is_first(std::uint32_t slot) { return std::exchange(batches_[slot], batch_) != batch_; }

  // Where the feature of the block's last row is written to, to be kept under that hash.
  std::span<float> keep(BlockId block, RowHash hash);
  // Empty where what is kept is another text's, or nothing.
  std::span<const float> kept(BlockId block, RowHash hash) const;

  // Before the device does the same. A row's copy is none of its business: rows are stored where they stay.
  void follow(const flow::BlockOp& op);

 private:
  void move(std::uint32_t from, std::uint32_t to);

  std::uint32_t num_blocks_;
  std::uint32_t hidden_;
  // Of blocks, then of host blocks.
  ComputedRows rows_;
  std::vector<RowHash> kept_;    // [blocks]
  std::vector<float> features_;  // [blocks, E]
  // Of blocks alone.
  std::vector<std::uint32_t> batches_;  // [slots] the last one with a row for it
  std::uint32_t batch_ = 0;
};

}  // namespace quire::speculate
