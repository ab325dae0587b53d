#include "core/speculate/models/draft_cache.h"

#include <string>

#include "core/base/check.h"
#include "core/base/start_error.h"

namespace quire::speculate {
namespace {

const backend::KvShape& copyable(const backend::KvShape& shape) {
  if (shape.type == backend::KvType::kInt4) {
    throw StartError(
        "a draft cannot stand in an int4 cache: its rows are stored in groups of 16; use another cache type");
  }
  return shape;
}

backend::KvCache& copyable(backend::KvCache& cache) {
  copyable(cache.shape());
  return cache;
}

}  // namespace

DraftCache::DraftCache(backend::Ops& ops, std::unique_ptr<backend::KvCache> own, backend::KvCache* target,
                       const DraftPlaces& places)
    : ops_(ops),
      own_(std::move(own)),
      kv_(own_ != nullptr ? *own_ : *target),
      places_(places),
      block_tokens_(kv_.shape().block_tokens),
      rows_(own_ != nullptr ? kv_.shape().num_blocks : 0, block_tokens_) {
  CHECK_GE(kv_.shape().num_blocks, places.first_block + places.num_blocks());
  for (std::uint32_t place = places.num_places; place > 0; --place) free_places_.push_back(place - 1);
  copies_.reserve(std::size_t{places.place_blocks} * block_tokens_);
}

DraftCache::DraftCache(backend::Ops& ops, const backend::KvShape& shape, const DraftPlaces& places)
    : DraftCache(ops, ops.make_kv(copyable(shape)), nullptr, places) {}

DraftCache::DraftCache(backend::Ops& ops, backend::KvCache& target, const DraftPlaces& places)
    : DraftCache(ops, nullptr, &copyable(target), places) {}

int DraftCache::take_place() {
  if (free_places_.empty()) return -1;
  const std::uint32_t place = free_places_.back();
  free_places_.pop_back();
  return static_cast<int>(place);
}

void DraftCache::give_back_place(std::uint32_t place) {
  CHECK_LT(place, places_.num_places);
  free_places_.push_back(place);
}

std::uint32_t DraftCache::first_missing(std::span<const BlockId> table, std::span<const RowHash> hashes,
                                        std::uint32_t from, std::uint32_t end, int place) {
  if (!own()) return end;
  std::uint32_t position = from;
  for (; position < end; ++position) {
    if (table[block_of(position)] == flow::kDroppedBlock) continue;
    const std::uint32_t to = slot(table, position);
    if (rows_.has(to, hashes[position])) continue;
    if (place < 0) break;
    const std::uint32_t drafted = scratch_slot(static_cast<std::uint32_t>(place), position);
    if (!rows_.has(drafted, hashes[position])) break;
    copy_row(drafted, to);
  }
  run_copies();
  return position;
}

void DraftCache::stage(std::span<const BlockId> table, std::span<const RowHash> hashes, std::uint32_t position,
                       std::uint32_t end, std::uint32_t place) {
  const std::uint32_t begin = block_of(position) * block_tokens_;
  if (!own()) {  // what was drafted there last need not be what the target makes of it
    const backend::BlockCopy copy{begin < position ? table[block_of(position)] : BlockId(),
                                  scratch_block(place, block_of(position))};
    if (begin < position) ops_.copy_blocks(kv_, {&copy, 1});
    return;
  }
  for (std::uint32_t at = begin; at < position && at < end; ++at) {
    const std::uint32_t to = scratch_slot(place, at);
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
  for (std::uint32_t index = first; index <= last; ++index) {
    const backend::BlockCopy copy{scratch_block(from, index), scratch_block(to, index)};
    ops_.copy_blocks(kv_, {&copy, 1});
    if (own()) rows_.copy_block(copy.from, copy.to);
  }
}

// What moves rows of a draft's taken path, or swaps, is for the target's rows: ours never lie where its nodes do, and what
// our slots hold they go on holding.
void DraftCache::follow(std::span<const flow::BlockOp> ops) {
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
