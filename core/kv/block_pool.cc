#include "core/kv/block_pool.h"

#include "core/base/check.h"

namespace quire::kv {

BlockPool::BlockPool(std::uint32_t num_blocks, std::uint32_t block_tokens)
    : block_tokens_(block_tokens), holders_(num_blocks, 0) {
  CHECK_GT(block_tokens, 0u);
  free_.reserve(num_blocks);
  for (std::uint32_t i = num_blocks; i > 0; --i) free_.push_back(BlockId(i - 1));
}

Result<BlockId> BlockPool::take() {
  engine_role.check();
  if (free_.empty()) return Error{Code::kOutOfBlocks, "no free KV block", "", 0};
  const BlockId block = free_.back();
  free_.pop_back();
  CHECK_EQ(holders_[block.value], 0u);
  holders_[block.value] = 1;
  return block;
}

void BlockPool::share(BlockId block) {
  engine_role.check();
  CHECK_GT(holders_.at(block.value), 0u);
  ++holders_[block.value];
}

void BlockPool::give_back(BlockId block) {
  engine_role.check();
  CHECK_GT(holders_.at(block.value), 0u);
  if (--holders_[block.value] == 0) free_.push_back(block);
}

void BlockPool::check_invariants() const {
  std::vector<bool> is_free(holders_.size(), false);
  for (const BlockId block : free_) {
    CHECK_LT(block.value, num_blocks());
    CHECK(!is_free[block.value]);
    CHECK_EQ(holders_[block.value], 0u);
    is_free[block.value] = true;
  }
  for (std::uint32_t i = 0; i < num_blocks(); ++i) CHECK_EQ(is_free[i], holders_[i] == 0);
}

}  // namespace quire::kv
