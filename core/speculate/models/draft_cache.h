// KV cache of a drafting decoder: one of its own under the target's block ids, or the target's itself (a self-draft
// reads the K and V that the target stored). Scratch blocks after the target's blocks form branch slots; a branch slot
// holds the rows of one draft path, from the block of the last committed token on.
// Shape   branch_slot_blocks blocks per branch slot. Block index i of a sequence is at i % branch_slot_blocks of the
//         slot, so the rows of accepted draft tokens need not move within the slot when the sequence advances.
// Owner   the drafter. A target's cache outlives it; only its scratch blocks are written.
// Thread  engine. After the constructor it allocates only for a longer list of copies than any before.
// Fails   StartError: no memory, or int4 KV, whose rows cannot be copied one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/backend/ops.h"
#include "core/base/ids.h"
#include "core/base/thread_role.h"
#include "core/flow/step_plan.h"
#include "core/speculate/computed_rows.h"

namespace quire::speculate {

struct BranchSlots {
  std::uint32_t first_block = 0;         // of the scratch blocks: the target's number of blocks
  std::uint32_t num_branch_slots = 0;    // one per sequence, and those of branches
  std::uint32_t branch_slot_blocks = 0;  // see blocks_for()

  std::uint32_t num_blocks() const { return num_branch_slots * branch_slot_blocks; }
  // Blocks that hold `depth` rows wherever in a block the first row lies.
  static constexpr std::uint32_t blocks_for(std::uint32_t depth, std::uint32_t block_tokens) {
    return depth == 0 ? 1 : 1 + (depth - 1 + block_tokens - 1) / block_tokens;
  }
};

class DraftCache {
 public:
  // A cache of its own; shape.num_blocks: the target's and the scratch blocks.
  DraftCache(backend::Ops& ops, const backend::KvShape& shape, const BranchSlots& branch_slots);
  // The target's cache, which has the scratch blocks after the pool's.
  DraftCache(backend::Ops& ops, backend::KvCache& target, const BranchSlots& branch_slots);
  DraftCache(const DraftCache&) = delete;
  DraftCache& operator=(const DraftCache&) = delete;

  bool own() const { return own_ != nullptr; }
  backend::KvCache& kv() { return kv_; }
  const backend::KvCache& kv() const { return kv_; }

  std::uint32_t block_of(std::uint32_t position) const { return position / block_tokens_; }
  std::uint32_t block_tokens() const { return block_tokens_; }
  std::uint32_t slot(std::span<const BlockId> table, std::uint32_t position) const {
    return table[position / block_tokens_].value * block_tokens_ + position % block_tokens_;
  }
  BlockId scratch_block(std::uint32_t branch_slot, std::uint32_t block_index) const {
    return BlockId(branch_slots_.first_block + branch_slot * branch_slots_.branch_slot_blocks +
                   block_index % branch_slots_.branch_slot_blocks);
  }
  std::uint32_t scratch_slot(std::uint32_t branch_slot, std::uint32_t position) const {
    return scratch_block(branch_slot, position / block_tokens_).value * block_tokens_ + position % block_tokens_;
  }

  // Reserves a branch slot; -1: none is free.
  int take_branch_slot() REQUIRES(engine_role);
  void give_back_branch_slot(std::uint32_t branch_slot) REQUIRES(engine_role);

  // The first position in [from, end) whose row is not in its slot. Copies rows that are only in the branch slot to
  // their slots. In a target's cache all rows are in their slots. `branch_slot` -1: the sequence has none.
  std::uint32_t first_missing(std::span<const BlockId> table, std::span<const RowHash> hashes, std::uint32_t from,
                              std::uint32_t end, int branch_slot) REQUIRES(engine_role);
  // Copies to the branch slot the rows of `position`'s block before `position` and `end`, from the block in `table`.
  void stage(std::span<const BlockId> table, std::span<const RowHash> hashes, std::uint32_t position, std::uint32_t end,
             std::uint32_t branch_slot) REQUIRES(engine_role);
  // Records that the row is stored by the next step, or was by the last. No effect on a target's cache.
  void stored(std::uint32_t slot, RowHash hash) REQUIRES(engine_role);
  // Copies a row from scratch to its own slot.
  void keep(std::uint32_t scratch_slot, std::uint32_t slot) REQUIRES(engine_role);
  // Copies the blocks from index `first` to `last` of branch slot `from` to branch slot `to`.
  void fork(std::uint32_t from, std::uint32_t to, std::uint32_t first, std::uint32_t last) REQUIRES(engine_role);

  void track(std::span<const flow::BlockOp> ops) REQUIRES(engine_role);

 private:
  DraftCache(backend::Ops& ops, std::unique_ptr<backend::KvCache> own, backend::KvCache* target,
             const BranchSlots& branch_slots);
  void copy_row(std::uint32_t from, std::uint32_t to);
  void run_copies();

  backend::Ops& ops_;
  std::unique_ptr<backend::KvCache> own_;
  backend::KvCache& kv_;
  const BranchSlots branch_slots_;
  const std::uint32_t block_tokens_;
  ComputedRows rows_;  // empty if the cache is the target's
  std::vector<std::uint32_t> free_branch_slots_;
  std::vector<backend::RowCopy> copies_;
  std::vector<backend::BlockCopy> block_copies_;
};

}  // namespace quire::speculate
