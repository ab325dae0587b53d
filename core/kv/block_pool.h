// The physical KV blocks, with a reference count each. A block is held (one holder or more), cached (no holder, but the
// prefix index has its content: evictable; "kept" in names) or empty. take() gives an empty block, or else evicts the
// least recently used cached one; a held block is never evicted.
// The groups of the model's layers (cache_group.h) all take blocks of one size from here; the pool does not know which
// group has a block.
// Shape   num_blocks blocks of P tokens; empty + cached + held = num_blocks.
// Owner   app::Instance; outlives every BlockTable and the PrefixIndex.
// Thread  engine.
// Fails   take(): kOutOfBlocks, and nothing changed. Giving back or sharing a block in the wrong state is our bug
//         (CHECK).
// Source  PagedAttention (Kwon et al. 2023); cached blocks: the idea of vLLM's free block queue.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/thread_role.h"
#include "core/kv/cache_group.h"

namespace quire::kv {

class BlockPool {
 public:
  // `groups`: of the model whose blocks these are; the first is a full one if there is any.
  BlockPool(std::uint32_t num_blocks, std::uint32_t block_tokens, std::vector<CacheGroup> groups = {CacheGroup{}});
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // Takes a block, which then has one holder. If none is empty, evicts a cached one, and calls the listener.
  Result<BlockId> take() REQUIRES(engine_role);
  // Adds a holder to a held or cached block.
  void share(BlockId block) REQUIRES(engine_role);
  // Removes a holder. Without holders the block is cached if it was watched with `keep`, else empty.
  void give_back(BlockId block) REQUIRES(engine_role);
  // The same for a block that is hardly wanted again: if it is cached, it is evicted before all others.
  void give_back_cold(BlockId block) REQUIRES(engine_role);

  // The same for a block that had rejected draft tokens only: num_given_back() does not count it.
  void give_back_unused(BlockId block) REQUIRES(engine_role);

  // Empties every cached block, and calls the listener for each. Returns their number.
  std::uint32_t evict_all() REQUIRES(engine_role);
  // Empties this cached block, and calls the listener.
  void evict(BlockId block) REQUIRES(engine_role);
  // Empties the least recently used cached block. False: none is cached.
  bool evict_oldest() REQUIRES(engine_role);
  // Counts a block, if it is cached, as used just now.
  void touch(BlockId block) REQUIRES(engine_role);

  // The prefix index has an entry for this held block: the listener is called when the block becomes empty. With `keep`
  // that is not at the last give_back(), after which the block is cached, but when take() or evict_all() evicts it.
  void watch(BlockId block, bool keep) REQUIRES(engine_role);
  // The prefix index no longer has an entry for this held block.
  void unwatch(BlockId block) REQUIRES(engine_role);
  // One listener, set once. It may evict() other blocks.
  void on_emptied(std::function<void(BlockId)> listener) { on_emptied_ = std::move(listener); }

  // From now on blocks that become empty are listed until take_emptied() takes the list, so that they can be poisoned.
  void list_emptied() { lists_emptied_ = true; }
  std::vector<BlockId> take_emptied() { return std::exchange(emptied_, {}); }

  std::uint32_t num_blocks() const { return static_cast<std::uint32_t>(blocks_.size()); }
  std::uint32_t block_tokens() const { return block_tokens_; }
  std::span<const CacheGroup> groups() const { return groups_; }
  std::uint32_t num_groups() const { return static_cast<std::uint32_t>(groups_.size()); }
  // Number of blocks that take() can give: empty and cached ones.
  std::uint32_t num_free() const { return static_cast<std::uint32_t>(empty_.size() + lru_.size()); }
  std::uint32_t num_empty() const { return static_cast<std::uint32_t>(empty_.size()); }
  std::uint32_t num_cached_blocks() const { return static_cast<std::uint32_t>(lru_.size()); }
  std::uint32_t num_held() const { return num_blocks() - num_free(); }
  std::uint32_t holders(BlockId block) const { return blocks_.at(block.value).holders; }
  bool is_empty(BlockId block) const { return holders(block) == 0 && !blocks_[block.value].keep; }
  // Number of blocks saved by sharing: the sum of holders - 1 over held blocks.
  std::uint64_t num_saved() const { return num_saved_; }
  // Counts since the start: blocks given back by their last holder (unused ones apart), and blocks evicted because
  // another was wanted.
  std::uint64_t num_given_back() const { return num_given_back_; }
  std::uint64_t num_evicted() const { return num_evicted_; }

  // CHECKs that every block is empty, cached or held, and that lists and counts agree with that. The engine calls it
  // when idle, and in debug builds after every step.
  void check_invariants() const;

 private:
  bool drop_holder(BlockId block) REQUIRES(engine_role);  // removes a holder; true: it was the last one
  // Takes a cached block out of the cache. It is in no list then: the caller holds it or adds it to empty_.
  void take_out(BlockId block) REQUIRES(engine_role);
  void add_empty(BlockId block) REQUIRES(engine_role);

  struct Block {
    std::uint32_t holders = 0;
    bool watched = false;
    bool keep = false;
    std::list<BlockId>::iterator place;  // in lru_ while cached, else in others_
  };

  const std::uint32_t block_tokens_;
  const std::vector<CacheGroup> groups_;
  std::vector<Block> blocks_;   // [num_blocks]
  std::vector<BlockId> empty_;  // a stack: the block given back last is still warm in the CPU's cache
  std::list<BlockId> lru_;      // cached blocks, least recently used first
  std::list<BlockId> others_;   // list nodes of all other blocks, so that moving a block between lists never allocates
  std::function<void(BlockId)> on_emptied_;
  mutable std::vector<bool> is_free_;  // scratch of check_invariants()
  bool lists_emptied_ = false;
  std::vector<BlockId> emptied_;
  std::uint64_t num_saved_ = 0;
  std::uint64_t num_given_back_ = 0;
  std::uint64_t num_evicted_ = 0;
};

}  // namespace quire::kv
