// The physical KV blocks: which are free, and how many holders each of the others has.
// Shape   num_blocks blocks of P tokens. A block is free (no holder) or held (one or more).
// Owner   the engine's instance; outlives every BlockTable.
// Thread  engine.
// Fails   take(): kOutOfBlocks, and nothing changed. Giving back or sharing a free block is our bug (CHECK).
// Source  PagedAttention (Kwon et al. 2023); the notebook's BlockPool.
#pragma once

#include <cstdint>
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

  // A free block, now held once.
  Result<BlockId> take();
  // One more holder.
  void share(BlockId block);
  // One holder less; with the last one the block is free again. Any order of givers ends the same.
  void give_back(BlockId block);

  std::uint32_t num_blocks() const { return static_cast<std::uint32_t>(holders_.size()); }
  std::uint32_t block_tokens() const { return block_tokens_; }
  std::uint32_t num_free() const { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t num_held() const { return num_blocks() - num_free(); }
  std::uint32_t holders(BlockId block) const { return holders_.at(block.value); }

  // Every block is free once and held by nobody, or held and not free. CHECKs; the engine calls it when idle,
  // debug builds at every step.
  void check_invariants() const;

 private:
  const std::uint32_t block_tokens_;
  std::vector<std::uint32_t> holders_;  // [num_blocks]
  std::vector<BlockId> free_;           // used as a stack: the block given back last is still warm in cache
};

}  // namespace quire::kv
