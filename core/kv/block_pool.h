// The physical KV blocks. A block is held (one holder or more), kept (nobody holds it, but its content may be wanted
// again) or empty. Held and kept blocks change state by their holders alone; who takes a block gets an empty one first,
// else the kept one that was wanted least recently.
// Shape   num_blocks blocks of P tokens; empty + kept + held = num_blocks.
// Owner   the engine's instance; outlives every BlockTable and the PrefixIndex.
// Thread  engine.
// Fails   take(): kOutOfBlocks, and nothing changed. Giving back or sharing a block in the wrong state is our bug
//         (CHECK).
// Source  PagedAttention (Kwon et al. 2023); the notebook's BlockPool; the kept blocks are vLLM's free-block queue as
//         an idea.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/thread_role.h"

namespace quire::kv {

class BlockPool {
 public:
  BlockPool(std::uint32_t num_blocks, std::uint32_t block_tokens);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // An empty block, now held once. Where none is empty, a kept one is emptied first: `on_emptied` hears of it.
  Result<BlockId> take() REQUIRES(engine_role);
  // One more holder, of a held block or a kept one.
  void share(BlockId block) REQUIRES(engine_role);
  // One holder less; with the last one the block is kept, if it was watched for that, or empty.
  void give_back(BlockId block) REQUIRES(engine_role);

  // The same of a block in which nothing stood that lasted: it does not count as given back.
  void give_back_unused(BlockId block) REQUIRES(engine_role);

  // Empties every kept block, as take() would; gives how many there were.
  std::uint32_t empty_kept() REQUIRES(engine_role);

  // Somebody remembers what is in this held block: the listener hears when it is emptied, and is then to forget it.
  // With `keep` that is not when the last holder lets go, but when take() needs the block.
  void watch(BlockId block, bool keep) REQUIRES(engine_role);
  // One listener, set once.
  void on_emptied(std::function<void(BlockId)> listener) { on_emptied_ = std::move(listener); }

  // From now on the blocks that become empty are listed until they are taken from the list: for who wants to poison
  // them.
  void list_emptied() { lists_emptied_ = true; }
  std::vector<BlockId> take_emptied() { return std::exchange(emptied_, {}); }

  std::uint32_t num_blocks() const { return static_cast<std::uint32_t>(blocks_.size()); }
  std::uint32_t block_tokens() const { return block_tokens_; }
  // Blocks that take() can give: empty and kept ones.
  std::uint32_t num_free() const { return static_cast<std::uint32_t>(empty_.size() + lru_.size()); }
  std::uint32_t num_empty() const { return static_cast<std::uint32_t>(empty_.size()); }
  std::uint32_t num_kept() const { return static_cast<std::uint32_t>(lru_.size()); }
  std::uint32_t num_held() const { return num_blocks() - num_free(); }
  std::uint32_t holders(BlockId block) const { return blocks_.at(block.value).holders; }
  bool is_empty(BlockId block) const { return holders(block) == 0 && !blocks_[block.value].keep; }
  // Blocks that would be needed more if nobody shared: the sum of holders - 1.
  std::uint64_t num_saved() const { return num_saved_; }
  // Since the start: blocks let go by their last holder (unused ones apart), and kept ones that take() emptied.
  std::uint64_t num_given_back() const { return num_given_back_; }
  std::uint64_t num_evicted() const { return num_evicted_; }

  // Every block is empty, kept or held, and in the one place that goes with it. CHECKs; the engine calls it when idle,
  // debug builds at every step.
  void check_invariants() const;

 private:
  bool let_go(BlockId block) REQUIRES(engine_role);  // by its last holder?
  BlockId empty_oldest() REQUIRES(engine_role);      // of the kept blocks, of which there is one; it is nowhere then

  struct Block {
    std::uint32_t holders = 0;
    bool watched = false;
    bool keep = false;
    std::list<BlockId>::iterator place;  // in lru_ while kept, else in others_
  };

  const std::uint32_t block_tokens_;
  std::vector<Block> blocks_;   // [num_blocks]
  std::vector<BlockId> empty_;  // used as a stack: the block given back last is still warm in cache
  std::list<BlockId> lru_;      // kept blocks, wanted least recently in front
  std::list<BlockId> others_;   // list nodes of all other blocks: moving one never allocates
  std::function<void(BlockId)> on_emptied_;
  mutable std::vector<bool> is_free_;  // scratch of check_invariants()
  bool lists_emptied_ = false;
  std::vector<BlockId> emptied_;
  std::uint64_t num_saved_ = 0;
  std::uint64_t num_given_back_ = 0;
  std::uint64_t num_evicted_ = 0;
};

}  // namespace quire::kv
