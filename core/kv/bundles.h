// Blocks that are of use only together: the window blocks at one restore point. A block is in one bundle at most.
// Shape   a ring of blocks for each bundle; all links are allocated in the constructor.
// Owner   PrefixIndex.
// Thread  engine.
// Fails   never.
// Source  ours.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/base/kv_constants.h"

namespace quire::kv {

class Bundles {
 public:
  explicit Bundles(std::uint32_t num_blocks) : next_(num_blocks, kNoBlock), previous_(num_blocks, kNoBlock) {}

  bool contains(BlockId block) const { return next_[block.value] != kNoBlock; }
  // Another block of the bundle of `block`, which must be in one; `block` itself if there is no other.
  BlockId next(BlockId block) const { return next_[block.value]; }

  // Puts `block` into the bundle of `member`, or into one of its own if that is kNoBlock. It leaves its old bundle.
  void add(BlockId block, BlockId member) {
    remove(block);
    if (member == kNoBlock || !contains(member)) {
      next_[block.value] = previous_[block.value] = block;
      return;
    }
    const BlockId after = next_[member.value];
    next_[member.value] = previous_[after.value] = block;
    next_[block.value] = after;
    previous_[block.value] = member;
  }
  // Takes `block` out of its bundle, if it is in one.
  void remove(BlockId block) {
    if (!contains(block)) return;
    const BlockId after = next_[block.value];
    const BlockId before = previous_[block.value];
    next_[before.value] = after;
    previous_[after.value] = before;
    next_[block.value] = previous_[block.value] = kNoBlock;
  }

 private:
  std::vector<BlockId> next_;      // [num_blocks] kNoBlock: in no bundle
  std::vector<BlockId> previous_;  // [num_blocks]
};

}  // namespace quire::kv
