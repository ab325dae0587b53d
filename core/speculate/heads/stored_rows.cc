#include "core/speculate/heads/stored_rows.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::speculate {

StoredRows::StoredRows(std::uint32_t num_blocks, std::uint32_t block_tokens, std::uint32_t num_host_blocks,
                       std::uint32_t hidden)
    : num_blocks_(num_blocks),
      hidden_(hidden),
      rows_(num_blocks + num_host_blocks, block_tokens),
      kept_(std::size_t{num_blocks} + num_host_blocks),
      features_((std::size_t{num_blocks} + num_host_blocks) * hidden),
      batches_(std::size_t{num_blocks} * block_tokens) {}

std::span<float> StoredRows::keep(BlockId block, RowHash hash) {
  kept_[block.value] = hash;
  return std::span(features_).subspan(std::size_t{block.value} * hidden_, hidden_);
}

std::span<const float> StoredRows::kept(BlockId block, RowHash hash) const {
  if (kept_[block.value] != hash) return {};
  return std::span(features_).subspan(std::size_t{block.value} * hidden_, hidden_);
}

void StoredRows::track(const flow::BlockOp& op) {
  using enum flow::BlockOp::Kind;
  switch (op.kind) {
    case kCopy:
      return move(op.from, op.to);
    case kPoison:
      rows_.forget_block(BlockId(op.to));
      kept_[op.to] = kNoRow;
      return;
    case kSwapOut:
      return move(op.from, num_blocks_ + op.to);
    case kSwapIn:
      return move(num_blocks_ + op.from, op.to);
    case kCopyResidualGroup:
      return;
  }
}

void StoredRows::move(std::uint32_t from, std::uint32_t to) {
  CHECK_LT(std::max(from, to), kept_.size());
  if (from == to) return;
  rows_.copy_block(BlockId(from), BlockId(to));
  kept_[to] = kept_[from];
  if (kept_[to] == kNoRow) return;
  std::copy_n(features_.begin() + static_cast<std::ptrdiff_t>(std::size_t{from} * hidden_), hidden_,
              features_.begin() + static_cast<std::ptrdiff_t>(std::size_t{to} * hidden_));
}

}  // namespace quire::speculate
