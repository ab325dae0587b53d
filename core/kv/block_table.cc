#include "core/kv/block_table.h"

#include "core/base/check.h"

namespace quire::kv {

Result<Done> BlockTable::grow_to(std::uint32_t num_tokens) {
  const std::uint32_t need = blocks_for(num_tokens, pool_->block_tokens());
  if (need <= size()) return Done{};
  if (need - size() > pool_->num_free()) return Error{Code::kOutOfBlocks, "not enough free KV blocks", "", 0};
  while (size() < need) blocks_.push_back(*pool_->take());
  return Done{};
}

BlockId BlockTable::extend() {
  blocks_.push_back(*pool_->take());
  return blocks_.back();
}

void BlockTable::adopt(BlockId block) {
  pool_->share(block);
  blocks_.push_back(block);
}

void BlockTable::share(const BlockTable& other, std::uint32_t num_tokens) {
  CHECK(blocks_.empty());
  for (const BlockId block : other.blocks().first(blocks_for(num_tokens, block_tokens()))) {
    if (block == kNoBlock) {
      skip();
    } else {
      adopt(block);
    }
  }
}

void BlockTable::replace(std::uint32_t i, BlockId block) {
  pool_->share(block);
  pool_->give_back(std::exchange(blocks_.at(i), block));
}

Result<BlockId> BlockTable::make_own(std::uint32_t i) {
  const Result<BlockId> fresh = pool_->take();
  if (!fresh) return fresh;
  const BlockId before = std::exchange(blocks_.at(i), *fresh);
  pool_->give_back(before);
  return before;
}

void BlockTable::drop(std::uint32_t i) {
  const BlockId block = std::exchange(blocks_.at(i), kNoBlock);
  if (block != kNoBlock) pool_->give_back(block);
}

void BlockTable::shrink_to(std::uint32_t num_tokens) {
  while (size() > blocks_for(num_tokens, block_tokens())) {
    if (blocks_.back() != kNoBlock) pool_->give_back_unused(blocks_.back());
    blocks_.pop_back();
  }
}

void BlockTable::give_back_all() {
  // Last block first: of the blocks that are kept, leaves grow old before what they stand on.
  while (!blocks_.empty()) give_back_last();
}

void BlockTable::give_back_last() {
  if (blocks_.back() != kNoBlock) pool_->give_back(blocks_.back());
  blocks_.pop_back();
}

}  // namespace quire::kv
