#include "core/kv/block_pool.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::kv {

BlockPool::BlockPool(std::uint32_t num_blocks, std::uint32_t block_tokens, std::vector<CacheGroup> groups)
    : block_tokens_(block_tokens), groups_(std::move(groups)), blocks_(num_blocks) {
  CHECK_GT(block_tokens, 0u);
  CHECK(!groups_.empty());
  CHECK(groups_[0].full() || std::ranges::none_of(groups_, &CacheGroup::full));
  CHECK(std::ranges::all_of(groups_, [](const CacheGroup& group) { return group.full() || group.tokens > 0; }));
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
    const std::uint32_t num_cached = num_cached_blocks();
    id = lru_.front();
    take_out(id);
    num_evicted_ += num_cached - num_cached_blocks();  // the listener may have evicted others
  } else {
    return Error{Code::kOutOfBlocks, "no free KV block", "", 0};
  }
  CHECK_EQ(blocks_[id.value].holders, 0u);
  blocks_[id.value].holders = 1;
  return id;
}

void BlockPool::take_out(BlockId id) {
  Block& block = blocks_[id.value];
  others_.splice(others_.begin(), lru_, block.place);
  block.watched = block.keep = false;
  if (on_emptied_) on_emptied_(id);
}

void BlockPool::add_empty(BlockId id) {
  empty_.push_back(id);
  if (lists_emptied_) emptied_.push_back(id);
}

void BlockPool::evict(BlockId id) {
  engine_role.check();
  CHECK(blocks_.at(id.value).holders == 0 && blocks_[id.value].keep);
  take_out(id);
  add_empty(id);
}

bool BlockPool::evict_oldest() {
  if (lru_.empty()) return false;
  const std::uint32_t num_cached = num_cached_blocks();
  evict(lru_.front());
  num_evicted_ += num_cached - num_cached_blocks();
  return true;
}

std::uint32_t BlockPool::evict_all() {
  engine_role.check();
  const auto num_kept_blocks = num_cached_blocks();
  while (!lru_.empty()) evict(lru_.front());
  return num_kept_blocks;
}

void BlockPool::touch(BlockId id) {
  engine_role.check();
  const Block& block = blocks_.at(id.value);
  if (block.holders == 0 && block.keep) lru_.splice(lru_.end(), lru_, block.place);
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
  if (drop_holder(id)) ++num_given_back_;
}

void BlockPool::give_back_cold(BlockId id) {
  if (!drop_holder(id)) return;
  ++num_given_back_;
  const Block& block = blocks_[id.value];
  if (block.keep) lru_.splice(lru_.begin(), lru_, block.place);
}

void BlockPool::give_back_unused(BlockId id) { drop_holder(id); }

bool BlockPool::drop_holder(BlockId id) {
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
  add_empty(id);
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

void BlockPool::unwatch(BlockId id) {
  engine_role.check();
  Block& block = blocks_.at(id.value);
  CHECK_GT(block.holders, 0u);
  block.watched = block.keep = false;
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
