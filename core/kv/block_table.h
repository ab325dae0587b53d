// The blocks that one sequence holds: for each group of layers a column of them, in order of position. Move-only.
// Shape   blocks(g)[i] covers tokens [i*P, (i+1)*P) in the layers of group g; only the last may be partial. kNoBlock:
//         no row reads it. Row i of the table: the blocks i of all groups. Columns may differ in length.
// Owner   the Sequence. Destruction gives every block back to the pool it came from; the pool outlives the table.
// Thread  engine.
// Fails   grow_to(), copy_on_write(): kOutOfBlocks, and nothing changed.
// Source  PagedAttention (Kwon et al. 2023), copy-on-write included; shrink_to(), for rejected drafts, is ours.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/kv_constants.h"
#include "core/kv/block_pool.h"
#include "core/kv/layout.h"

namespace quire::kv {

class BlockTable {
 public:
  explicit BlockTable(BlockPool& pool) : pool_(&pool), columns_(pool.num_groups()) {}
  BlockTable(BlockTable&& other) noexcept : pool_(other.pool_), columns_(std::move(other.columns_)) {
    other.columns_.clear();
  }
  BlockTable& operator=(BlockTable&&) = delete;
  ~BlockTable() {
    if (empty()) return;
    engine_role.check();
    give_back_all();
  }

  void reserve(std::uint32_t num_tokens);
  void shrink_memory();  // frees unused memory of reserve()

  // The tokens that a table is to cover: CacheGroup::reserved_tokens().
  struct Reach {
    std::uint32_t num_tokens = 0;
    std::uint32_t next_position = 0;
    std::uint32_t step_tokens = 0;
  };
  static Reach all_of(std::uint32_t num_tokens) { return {num_tokens, num_tokens, 0}; }  // in all groups

  // Takes blocks from the pool until every column covers its group's tokens: all that are missing, or none.
  Result<Done> grow_to(const Reach& reach) REQUIRES(engine_role);
  Result<Done> grow_to(std::uint32_t num_tokens) REQUIRES(engine_role) { return grow_to(all_of(num_tokens)); }
  // Number of blocks that grow_to() would take.
  std::uint32_t num_missing(const Reach& reach) const;
  // Appends a row of blocks [groups] that have the K and V of their next tokens already, as one more holder of each.
  void adopt(std::span<const BlockId> row) REQUIRES(engine_role);
  // Appends the blocks of the first `num_tokens` tokens of another table, as one more holder each. Only while empty.
  void share(const BlockTable& other, std::uint32_t num_tokens) REQUIRES(engine_role);
  // Replaces block i of a group by one with the same content, as one more holder, and gives the old one back.
  void replace(std::uint32_t group, std::uint32_t i, BlockId block) REQUIRES(engine_role);
  // Copy-on-write: replaces block i of a group by a new block that this table alone holds, and gives the old one back.
  // Returns the old one, whose content the caller has to copy before any row is stored.
  Result<BlockId> copy_on_write(std::uint32_t group, std::uint32_t i) REQUIRES(engine_role);
  // Gives block i of a group back, which no later row reads, and leaves kNoBlock in its place. With `cold` it is
  // evicted before all others.
  void drop(std::uint32_t group, std::uint32_t i, bool cold) REQUIRES(engine_role);
  // Drops block i of all groups.
  void drop_row(std::uint32_t i) REQUIRES(engine_role);
  // Appends one new block to the column of a group. The pool must have a free one (CHECK).
  BlockId extend(std::uint32_t group) REQUIRES(engine_role);
  // Appends kNoBlock to the column of a group.
  void skip(std::uint32_t group) { columns_[group].push_back(kNoBlock); }
  // Gives the blocks of the last row back, and removes it from the table.
  void give_back_last_row() REQUIRES(engine_role);
  // Gives back the blocks behind the first `num_tokens` tokens, which had rejected draft tokens only.
  void shrink_to(std::uint32_t num_tokens) REQUIRES(engine_role);
  // Gives every block back; the table is empty and can grow again.
  void give_back_all() REQUIRES(engine_role);

  std::span<const BlockId> blocks(std::uint32_t group = 0) const { return columns_[group]; }
  std::uint32_t size(std::uint32_t group = 0) const { return static_cast<std::uint32_t>(columns_[group].size()); }
  // Block i of a group; kNoBlock if its column is shorter.
  BlockId block(std::uint32_t group, std::uint32_t i) const { return i < size(group) ? columns_[group][i] : kNoBlock; }
  std::uint32_t num_rows() const;  // length of the longest column
  bool empty() const { return num_rows() == 0; }
  std::uint32_t num_held() const;  // number of its blocks
  bool holds(BlockId block) const;
  std::span<const CacheGroup> groups() const { return pool_->groups(); }
  std::uint32_t num_groups() const { return pool_->num_groups(); }
  std::uint32_t block_tokens() const { return pool_->block_tokens(); }
  std::uint32_t capacity_tokens() const { return num_rows() * block_tokens(); }
  // Slot of the token at `position`, which the group's column must cover.
  std::uint32_t slot(std::uint32_t group, std::uint32_t position) const {
    return slot_of(columns_[group][position / block_tokens()], position, block_tokens());
  }

 private:
  std::uint32_t column_size(std::uint32_t group, const Reach& reach) const {
    const CacheGroup& its = groups()[group];
    return blocks_for(its.reserved_tokens(reach.num_tokens, reach.next_position, reach.step_tokens), block_tokens());
  }

  BlockPool* pool_;
  std::vector<std::vector<BlockId>> columns_;  // [groups]
};

}  // namespace quire::kv
