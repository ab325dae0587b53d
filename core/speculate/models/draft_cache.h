// The K and V that a drafting decoder reads and writes: a cache of its own with the same block ids as the target's, or the
// target's itself (a self-draft reads what the target stored). Behind the target's blocks lie scratch blocks, in places: a
// place has the rows of one path that is being drafted, from the block of the last committed token on.
// Shape   place_blocks blocks a place; block index i of a sequence stands in the place's block i % place_blocks, so that what
//         was drafted and then taken lies right when the sequence has gone on.
// Owner   the drafter. A target's cache outlives it; of that nothing but scratch is ever written.
// Thread  engine. Nothing allocates after the constructor, but for longer lists of copies than ever.
// Fails   StartError: no memory, or int4, whose rows cannot be copied one by one.
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

struct DraftPlaces {
  std::uint32_t first_block = 0;   // of the scratch: the number of the target's blocks
  std::uint32_t num_places = 0;    // one for each sequence, and those of branches
  std::uint32_t place_blocks = 0;  // see place_blocks()

  std::uint32_t num_blocks() const { return num_places * place_blocks; }
  // So that `depth` rows fit, wherever in a block the first stands.
  static constexpr std::uint32_t blocks_for(std::uint32_t depth, std::uint32_t block_tokens) {
    return depth == 0 ? 1 : 1 + (depth - 1 + block_tokens - 1) / block_tokens;
  }
};

class DraftCache {
 public:
  // One of its own; shape.num_blocks: target's and scratch.
  DraftCache(backend::Ops& ops, const backend::KvShape& shape, const DraftPlaces& places);
  // The target's, which has the scratch blocks behind the pool's.
  DraftCache(backend::Ops& ops, backend::KvCache& target, const DraftPlaces& places);
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
  BlockId scratch_block(std::uint32_t place, std::uint32_t block_index) const {
    return BlockId(places_.first_block + place * places_.place_blocks + block_index % places_.place_blocks);
  }
  std::uint32_t scratch_slot(std::uint32_t place, std::uint32_t position) const {
    return scratch_block(place, position / block_tokens_).value * block_tokens_ + position % block_tokens_;
  }

  // A place for a path; -1: none left.
  int take_place() REQUIRES(engine_role);
  void give_back_place(std::uint32_t place) REQUIRES(engine_role);

  // The first position in [from, end) whose row is not in its slot. What is in scratch alone is copied there. Rows of a target's
  // cache are all there. `place` -1: it has none.
  std::uint32_t first_missing(std::span<const BlockId> table, std::span<const RowHash> hashes, std::uint32_t from,
                              std::uint32_t end, int place) REQUIRES(engine_role);
  // The place is to have the rows of position's block that stand before it and before `end`, as the table's block has them.
  void stage(std::span<const BlockId> table, std::span<const RowHash> hashes, std::uint32_t position, std::uint32_t end,
             std::uint32_t place) REQUIRES(engine_role);
  // The step that stores the row comes next, or was. Nothing to remember of a target's cache.
  void stored(std::uint32_t slot, RowHash hash) REQUIRES(engine_role);
  // A row drafted in scratch, now to lie in its slot, too.
  void keep(std::uint32_t scratch_slot, std::uint32_t slot) REQUIRES(engine_role);
  // Another path that shares its rows from block index `first` up to `last`.
  void fork(std::uint32_t from, std::uint32_t to, std::uint32_t first, std::uint32_t last) REQUIRES(engine_role);

  void follow(std::span<const flow::BlockOp> ops) REQUIRES(engine_role);

 private:
  DraftCache(backend::Ops& ops, std::unique_ptr<backend::KvCache> own, backend::KvCache* target,
             const DraftPlaces& places);
  void copy_row(std::uint32_t from, std::uint32_t to);
  void run_copies();

  backend::Ops& ops_;
  std::unique_ptr<backend::KvCache> own_;
  backend::KvCache& kv_;
  const DraftPlaces places_;
  const std::uint32_t block_tokens_;
  ComputedRows rows_;  // empty where the cache is the target's
  std::vector<std::uint32_t> free_places_;
  std::vector<backend::RowCopy> copies_;
};

}  // namespace quire::speculate
