#include "core/kv/block_pool.h"

#include "core/base/check.h"

namespace quire::kv {

BlockPool::BlockPool(std::uint32_t num_blocks, std::uint32_t block_tokens)
    : block_tokens_(block_tokens), blocks_(num_blocks) {
  CHECK_GT(block_tokens, 0u);
  empty_.reserve(num_blocks);
  for (std::uint32_t i = num_blocks; i > 0; --i) {
    empty_.push_back(BlockId(i - 1));
    others_.push_front(BlockId(i - 1));
    blocks_[i - 1].place = others_.begin();
  }
}

Result<BlockId> BlockPool::take() {
  engine_role.check();
  BlockId id;
  if (!empty_.empty()) {
    id = empty_.back();
    empty_.pop_back();
  } else if (!lru_.empty()) {
    id = empty_oldest();
    ++num_evicted_;
  } else {
    return Error{Code::kOutOfBlocks, "no free KV block", "", 0};
  }
  CHECK_EQ(blocks_[id.value].holders, 0u);
  blocks_[id.value].holders = 1;
  return id;
}

BlockId BlockPool::empty_oldest() {
  const BlockId id = lru_.front();
  others_.splice(others_.begin(), lru_, lru_.begin());
  blocks_[id.value].watched = blocks_[id.value].keep = false;
  if (on_emptied_) on_emptied_(id);
  return id;
}

std::uint32_t BlockPool::empty_kept() {
  engine_role.check();
  const auto num_kept_blocks = num_kept();
  while (!lru_.empty()) {
    empty_.push_back(empty_oldest());
    if (lists_emptied_) emptied_.push_back(empty_.back());
  }
  return num_kept_blocks;
}

void BlockPool::share(BlockId id) {
  engine_role.check();
  Block& block = blocks_.at(id.value);
  if (block.holders == 0) {
    CHECK(block.keep);  // an empty block has no content to share
    others_.splice(others_.begin(), lru_, block.place);
  } else {
    ++num_saved_;
  }
  ++block.holders;
}

void BlockPool::give_back(BlockId id) {
  if (let_go(id)) ++num_given_back_;
}

void BlockPool::give_back_unused(BlockId id) { let_go(id); }

bool BlockPool::let_go(BlockId id) {
  engine_role.check();
  Block& block = blocks_.at(id.value);
  CHECK_GT(block.holders, 0u);
  if (--block.holders != 0) {
    --num_saved_;
    return false;
  }
  if (block.keep) {
    lru_.splice(lru_.end(), others_, block.place);
    return true;
  }
  empty_.push_back(id);
  if (lists_emptied_) emptied_.push_back(id);
  if (std::exchange(block.watched, false)) on_emptied_(id);
  return true;
}

void BlockPool::watch(BlockId id, bool keep) {
  engine_role.check();
  Block& block = blocks_.at(id.value);
  CHECK_GT(block.holders, 0u);
  block.watched = true;
  block.keep = block.keep || keep;
}

void BlockPool::check_invariants() const {
  is_free_.assign(blocks_.size(), false);
  for (const BlockId id : empty_) {
    CHECK_LT(id.value, num_blocks());
    CHECK(!is_free_[id.value]);
    CHECK(!blocks_[id.value].watched);
    is_free_[id.value] = true;
  }
  for (const BlockId id : lru_) {
    CHECK(!is_free_[id.value]);
    CHECK(blocks_[id.value].keep);
    is_free_[id.value] = true;
  }
  std::uint64_t saved = 0;
  for (std::uint32_t i = 0; i < num_blocks(); ++i) {
    CHECK_EQ(is_free_[i], blocks_[i].holders == 0);
    if (blocks_[i].holders > 1) saved += blocks_[i].holders - 1;
  }
  CHECK_EQ(saved, num_saved_);
}

}  // namespace quire::kv
