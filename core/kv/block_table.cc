#include "core/kv/block_table.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/kv_constants.h"

namespace quire::kv {

void BlockTable::reserve(std::uint32_t num_tokens) {
  for (auto& column : columns_) column.reserve(blocks_for(num_tokens, block_tokens()));
}

void BlockTable::shrink_memory() {
  for (auto& column : columns_) column.shrink_to_fit();
}

Result<Done> BlockTable::grow_to(const Reach& reach) {
  if (num_missing(reach) > pool_->num_free()) {
    return Error{Code::kOutOfBlocks, "not enough free KV blocks", "", 0};
  }
  for (std::uint32_t group = 0; group < columns_.size(); ++group) {
    while (size(group) < column_size(group, reach)) extend(group);
  }
  return Done{};
}

std::uint32_t BlockTable::num_missing(const Reach& reach) const {
  std::uint32_t missing = 0;
  for (std::uint32_t group = 0; group < columns_.size(); ++group) {
    const std::uint32_t need = column_size(group, reach);
    missing += need - std::min(need, size(group));
  }
  return missing;
}

BlockId BlockTable::extend(std::uint32_t group) {
  columns_[group].push_back(*pool_->take());
  return columns_[group].back();
}

void BlockTable::adopt(std::span<const BlockId> row) {
  CHECK_EQ(row.size(), columns_.size());
  for (std::uint32_t group = 0; group < columns_.size(); ++group) {
    if (row[group] != kNoBlock) pool_->share(row[group]);
    columns_[group].push_back(row[group]);
  }
}

void BlockTable::share(const BlockTable& other, std::uint32_t num_tokens) {
  CHECK(empty());
  for (std::uint32_t group = 0; group < columns_.size(); ++group) {
    for (const BlockId block : other.blocks(group).first(blocks_for(num_tokens, block_tokens()))) {
      if (block != kNoBlock) pool_->share(block);
      columns_[group].push_back(block);
    }
  }
}

void BlockTable::replace(std::uint32_t group, std::uint32_t i, BlockId block) {
  pool_->share(block);
  pool_->give_back(std::exchange(columns_[group].at(i), block));
}

Result<BlockId> BlockTable::copy_on_write(std::uint32_t group, std::uint32_t i) {
  const Result<BlockId> fresh = pool_->take();
  if (!fresh) return fresh;
  const BlockId before = std::exchange(columns_[group].at(i), *fresh);
  pool_->give_back(before);
  return before;
}

void BlockTable::drop(std::uint32_t group, std::uint32_t i, bool cold) {
  const BlockId block = std::exchange(columns_[group].at(i), kNoBlock);
  if (block == kNoBlock) return;
  if (cold) {
    pool_->give_back_cold(block);
  } else {
    pool_->give_back(block);
  }
}

void BlockTable::drop_row(std::uint32_t i) {
  for (std::uint32_t group = 0; group < columns_.size(); ++group) drop(group, i, /*cold=*/false);
}

void BlockTable::shrink_to(std::uint32_t num_tokens) {
  for (auto& column : columns_) {
    while (column.size() > blocks_for(num_tokens, block_tokens())) {
      if (column.back() != kNoBlock) pool_->give_back_unused(column.back());
      column.pop_back();
    }
  }
}

void BlockTable::give_back_all() {
  // Last row first: of the cached blocks, a leaf of the prefix index is then evicted before its ancestors.
  while (!empty()) give_back_last_row();
}

void BlockTable::give_back_last_row() {
  const std::uint32_t last = num_rows();
  for (auto& column : columns_) {
    if (column.size() < last) continue;
    if (column.back() != kNoBlock) pool_->give_back(column.back());
    column.pop_back();
  }
}

std::uint32_t BlockTable::num_rows() const {
  std::size_t rows = 0;
  for (const auto& column : columns_) rows = std::max(rows, column.size());
  return static_cast<std::uint32_t>(rows);
}

std::uint32_t BlockTable::num_held() const {
  std::size_t held = 0;
  for (const auto& column : columns_) {
    held += column.size() - static_cast<std::size_t>(std::ranges::count(column, kNoBlock));
  }
  return static_cast<std::uint32_t>(held);
}

bool BlockTable::holds(BlockId block) const {
  return std::ranges::any_of(columns_, [block](const auto& column) { return std::ranges::count(column, block) != 0; });
}

}  // namespace quire::kv
