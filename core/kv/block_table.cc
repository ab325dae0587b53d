#include "core/kv/block_table.h"

namespace quire::kv {

Result<Done> BlockTable::grow_to(std::uint32_t num_tokens) {
  const std::uint32_t need = blocks_for(num_tokens, pool_->block_tokens());
  const auto have = static_cast<std::uint32_t>(blocks_.size());
  if (need <= have) return Done{};
  if (need - have > pool_->num_free()) return Error{Code::kOutOfBlocks, "not enough free KV blocks", "", 0};
  while (blocks_.size() < need) blocks_.push_back(*pool_->take());
  return Done{};
}

void BlockTable::adopt(BlockId block) {
  pool_->share(block);
  blocks_.push_back(block);
}

void BlockTable::replace(std::uint32_t i, BlockId block) {
  pool_->share(block);
  pool_->give_back(std::exchange(blocks_.at(i), block));
}

void BlockTable::give_back_all() {
  // Last block first: of the blocks that are kept, leaves grow old before what they stand on.
  for (; !blocks_.empty(); blocks_.pop_back()) pool_->give_back(blocks_.back());
}

}  // namespace quire::kv
