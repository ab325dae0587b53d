#include "core/speculate/models/draft_cache.h"

#include <string>

#include "core/base/check.h"
#include "core/base/kv_constants.h"
#include "core/base/start_error.h"

namespace quire::speculate {
namespace {

const backend::KvShape& copyable(const backend::KvShape& shape) {
  if (shape.type == backend::KvType::kInt4) {
    throw StartError(
        "an int4 KV cache cannot hold drafts: it stores positions in groups of 16; use another --kv-cache-dtype");
  }
  return shape;
}

backend::KvCache& copyable(backend::KvCache& cache) {
  copyable(cache.shape());
  return cache;
}

}  // namespace

DraftCache::DraftCache(backend::Ops& ops, std::unique_ptr<backend::KvCache> own, backend::KvCache* target,
                       const BranchSlots& branch_slots)
    : ops_(ops),
      own_(std::move(own)),
      kv_(own_ != nullptr ? *own_ : *target),
      branch_slots_(branch_slots),
      block_tokens_(kv_.shape().block_tokens),
      rows_(own_ != nullptr ? kv_.shape().num_blocks : 0, block_tokens_) {
  CHECK_GE(kv_.shape().num_blocks, branch_slots.first_block + branch_slots.num_blocks());
  for (std::uint32_t branch_slot = branch_slots.num_branch_slots; branch_slot > 0; --branch_slot)
    free_branch_slots_.push_back(branch_slot - 1);
  copies_.reserve(std::size_t{branch_slots.branch_slot_blocks} * block_tokens_);
}

DraftCache::DraftCache(backend::Ops& ops, const backend::KvShape& shape, const BranchSlots& branch_slots)
    : DraftCache(ops, ops.make_kv(copyable(shape)), nullptr, branch_slots) {}

DraftCache::DraftCache(backend::Ops& ops, backend::KvCache& target, const BranchSlots& branch_slots)
    : DraftCache(ops, nullptr, &copyable(target), branch_slots) {}

int DraftCache::take_branch_slot() {
  if (free_branch_slots_.empty()) return -1;
  const std::uint32_t branch_slot = free_branch_slots_.back();
  free_branch_slots_.pop_back();
  return static_cast<int>(branch_slot);
}

void DraftCache::give_back_branch_slot(std::uint32_t branch_slot) {
  CHECK_LT(branch_slot, branch_slots_.num_branch_slots);
  free_branch_slots_.push_back(branch_slot);
}

std::uint32_t DraftCache::first_missing(std::span<const BlockId> table, std::span<const RowHash> hashes,
                                        std::uint32_t from, std::uint32_t end, int branch_slot) {
  if (!own()) return end;
  std::uint32_t position = from;
  for (; position < end; ++position) {
    if (table[block_of(position)] == kNoBlock) continue;
    const std::uint32_t to = slot(table, position);
    if (rows_.has(to, hashes[position])) continue;
    if (branch_slot < 0) break;
    const std::uint32_t drafted = scratch_slot(static_cast<std::uint32_t>(branch_slot), position);
    if (!rows_.has(drafted, hashes[position])) break;
    copy_row(drafted, to);
  }
  run_copies();
  return position;
}

void DraftCache::stage(std::span<const BlockId> table, std::span<const RowHash> hashes, std::uint32_t position,
                       std::uint32_t end, std::uint32_t branch_slot) {
  const std::uint32_t begin = block_of(position) * block_tokens_;
  if (!own()) {  // a row drafted there differs from the target's of the same tokens
    const backend::BlockCopy copy{begin < position ? table[block_of(position)] : BlockId(),
                                  scratch_block(branch_slot, block_of(position))};
    if (begin < position) ops_.copy_blocks(kv_, {&copy, 1});
    return;
  }
  for (std::uint32_t at = begin; at < position && at < end; ++at) {
    const std::uint32_t to = scratch_slot(branch_slot, at);
    if (!rows_.has(to, hashes[at])) copy_row(slot(table, at), to);
  }
  run_copies();
}

void DraftCache::stored(std::uint32_t slot, RowHash hash) {
  if (own()) rows_.store(slot, hash);
}

void DraftCache::keep(std::uint32_t scratch_slot, std::uint32_t slot) {
  if (!own()) return;
  copy_row(scratch_slot, slot);
  run_copies();
}

void DraftCache::fork(std::uint32_t from, std::uint32_t to, std::uint32_t first, std::uint32_t last) {
  block_copies_.clear();
  for (std::uint32_t index = first; index <= last; ++index) {
    block_copies_.push_back({scratch_block(from, index), scratch_block(to, index)});
    if (own()) rows_.copy_block(block_copies_.back().from, block_copies_.back().to);
  }
  ops_.copy_blocks(kv_, block_copies_);
}

// Copies of accepted rows and swaps concern the target's rows only: a drafter's own rows are never in the slots of
// draft nodes, and its cache is not swapped; the hashes say which rows are left.
void DraftCache::track(std::span<const flow::BlockOp> ops) {
  if (!own()) return;
  for (const flow::BlockOp& op : ops) {
    const backend::BlockCopy copy{BlockId(op.from), BlockId(op.to)};
    if (op.kind == flow::BlockOp::Kind::kCopy) {
      ops_.copy_blocks(kv_, {&copy, 1});
      rows_.copy_block(copy.from, copy.to);
    }
    if (op.kind == flow::BlockOp::Kind::kPoison) {
      ops_.poison_block(kv_, copy.to);
      rows_.forget_block(copy.to);
    }
  }
}

void DraftCache::copy_row(std::uint32_t from, std::uint32_t to) {
  copies_.push_back({from, to});
  rows_.copy_row(from, to);
}

void DraftCache::run_copies() {
  if (!copies_.empty()) ops_.copy_rows(kv_, copies_);
  copies_.clear();
}

}  // namespace quire::speculate
