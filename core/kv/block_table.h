// The blocks one sequence holds, in reading order.
// Shape   blocks()[i] covers tokens [i*P, (i+1)*P); only the last may be part full. kNoBlock: dropped, no row looks
//         there.
// Owner   the Sequence. Destruction gives every block back to the pool it came from.
// Thread  engine.
// Fails   grow_to(), make_own(): kOutOfBlocks, and nothing changed.
// Source  PagedAttention (Kwon et al. 2023), copy-on-write included; the notebook's PageTable.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/kv/block_pool.h"
#include "core/kv/layout.h"

namespace quire::kv {

class BlockTable {
 public:
  explicit BlockTable(BlockPool& pool) : pool_(&pool) {}
  BlockTable(BlockTable&& other) noexcept : pool_(other.pool_), blocks_(std::move(other.blocks_)) {
    other.blocks_.clear();
  }
  BlockTable& operator=(BlockTable&&) = delete;
  ~BlockTable() {
    if (blocks_.empty()) return;
    engine_role.check();
    give_back_all();
  }

  void reserve(std::uint32_t num_tokens) { blocks_.reserve(blocks_for(num_tokens, block_tokens())); }
  void forget_room() { blocks_.shrink_to_fit(); }  // what reserve() took and it does not need

  // Takes blocks until `num_tokens` tokens are covered; all of them or none.
  Result<Done> grow_to(std::uint32_t num_tokens) REQUIRES(engine_role);
  // Goes on with a block that holds its next tokens already: one more holder.
  void adopt(BlockId block) REQUIRES(engine_role);
  // An empty table begins with the blocks of the first `num_tokens` tokens of another: one more holder each.
  void share(const BlockTable& other, std::uint32_t num_tokens) REQUIRES(engine_role);
  // Block i of the table is this one from now on, which has the same content.
  void replace(std::uint32_t i, BlockId block) REQUIRES(engine_role);
  // Block i of the table is a fresh one from now on, held by this table alone; gives the block that stood there, whose
  // content is to be copied before anything is stored.
  Result<BlockId> make_own(std::uint32_t i) REQUIRES(engine_role);
  // Nobody will look at block i again.
  void drop(std::uint32_t i) REQUIRES(engine_role);
  // One fresh block more. The pool must have it.
  BlockId extend() REQUIRES(engine_role);
  // A place for a block that is not there.
  void skip() { blocks_.push_back(kNoBlock); }
  // The last block is given back, and is not part of the table any more.
  void give_back_last() REQUIRES(engine_role);
  // Blocks that the first `num_tokens` tokens do not need are given back: what stood in them were guesses.
  void shrink_to(std::uint32_t num_tokens) REQUIRES(engine_role);
  // Gives every block back; the table is empty and can grow again.
  void give_back_all() REQUIRES(engine_role);

  std::span<const BlockId> blocks() const { return blocks_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(blocks_.size()); }
  std::uint32_t block_tokens() const { return pool_->block_tokens(); }
  std::uint32_t capacity_tokens() const { return size() * pool_->block_tokens(); }
  // Where the token at `position` is stored. The table must cover it.
  std::uint32_t slot(std::uint32_t position) const {
    return slot_of(blocks_[position / pool_->block_tokens()], position, pool_->block_tokens());
  }

 private:
  BlockPool* pool_;
  std::vector<BlockId> blocks_;
};

}  // namespace quire::kv
