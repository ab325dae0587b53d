#include "core/schedule/sequence/prefix_cursor.h"

#include "core/base/check.h"
#include "core/base/kv_constants.h"

namespace quire::schedule {

std::uint32_t PrefixCursor::adopt(kv::PrefixIndex& index, std::span<const TokenId> adoptable) {
  CHECK(table_.empty());
  num_points_ = 0;
  keeps_restore_points_ = true;
  num_first_tokens_ = static_cast<std::uint32_t>(tokens_.size());
  if (!cache_namespace_) return 0;
  const kv::PrefixIndex::Match match = index.match(*cache_namespace_, adoptable);
  for (std::size_t row = 0; row < match.entries.size(); ++row) {
    table_.adopt(match.blocks.subspan(row * table_.num_groups(), table_.num_groups()));
  }
  num_published_ = match.num_tokens / table_.block_tokens();
  if (num_published_ > 0) last_entry_ = match.entries[num_published_ - 1];
  num_finite_ = num_marked_ = match.num_tokens;
  if (match.num_agreeing > match.num_tokens) keep_restore_point(match.num_agreeing);
  return match.num_tokens;
}

std::uint32_t PrefixCursor::num_cached(kv::PrefixIndex& index, std::span<const TokenId> adoptable) const {
  return cache_namespace_ ? index.match(*cache_namespace_, adoptable).num_tokens : 0;
}

void PrefixCursor::publish(kv::PrefixIndex& index, bool partial) {
  if (!publishes_) return;
  if (!index.has(last_entry_)) {  // all its blocks were out of the window, and are evicted
    num_published_ = 0;
    last_entry_ = kv::PrefixIndex::kRoot;
  }
  for (; (num_published_ + 1) * table_.block_tokens() <= num_finite_; ++num_published_) {
    if (!publish_row(index, num_published_)) {
      publishes_ = false;
      return;
    }
    const std::uint32_t depth = (num_published_ + 1) * table_.block_tokens();
    if (is_restore_point(index, depth)) mark(index, last_entry_, depth);
  }
  if (partial) publish_partial(index);
  index.forget_if_empty(last_entry_);
}

bool PrefixCursor::publish_row(kv::PrefixIndex& index, std::uint32_t row) {
  for (std::uint32_t group = 0; group < row_.size(); ++group) row_[group] = table_.block(group, row);
  const auto entry = index.insert(*cache_namespace_, last_entry_, tokens_of(row), row_);
  if (!entry) return false;
  for (std::uint32_t group = 0; group < row_.size(); ++group) {
    if (row_[group] != table_.block(group, row)) table_.replace(group, row, row_[group]);
  }
  last_entry_ = *entry;
  return true;
}

void PrefixCursor::publish_partial(kv::PrefixIndex& index) {
  std::optional<kv::EntryId> entry;
  if (num_finite_ % table_.block_tokens() != 0) {
    for (std::uint32_t group = 0; group < row_.size(); ++group) row_[group] = table_.block(group, num_published_);
    entry = index.insert_partial(*cache_namespace_, last_entry_, tokens_of(num_published_), row_);
  }
  if (entry) {
    mark(index, *entry, num_finite_);
  } else {
    mark(index, last_entry_, num_published_ * table_.block_tokens());
  }
}

void PrefixCursor::mark_end(kv::PrefixIndex& index) {
  const std::uint32_t depth = num_published_ * table_.block_tokens();
  if (publishes_ && depth > num_marked_) mark(index, last_entry_, depth);
}

void PrefixCursor::mark(kv::PrefixIndex& index, kv::EntryId entry, std::uint32_t num_tokens) {
  index.mark_restore_point(entry, num_tokens);
  num_marked_ = num_tokens;
}

// The first multiple of restore_tokens, in whole blocks, from `num_tokens` on.
std::uint32_t PrefixCursor::next_multiple(const kv::PrefixIndex& index, std::uint32_t num_tokens) const {
  const std::uint32_t every = index.options().restore_tokens;
  return whole_blocks((num_tokens + every - 1) / every * every);
}

bool PrefixCursor::is_restore_point(const kv::PrefixIndex& index, std::uint32_t num_tokens) const {
  if (num_tokens < num_first_tokens_ && next_multiple(index, num_tokens) == num_tokens) return true;
  const auto points = std::span(points_).first(num_points_);
  return std::ranges::find(points, num_tokens) != points.end();
}

// True if a restore point that is not entered yet needs the block of this row.
bool PrefixCursor::is_kept(const kv::PrefixIndex& index, std::uint32_t group, std::uint32_t row) const {
  if (!publishes_ || !keeps_restore_points_ || row < num_published_) return false;
  const std::uint32_t end = (row + 1) * table_.block_tokens();
  const auto needs_it = [&](std::uint32_t point) {
    return point >= end && table_.groups()[group].first_needed(point) < end;
  };
  const std::uint32_t multiple = next_multiple(index, end);
  return (multiple < num_first_tokens_ && needs_it(multiple)) ||
         std::ranges::any_of(std::span(points_).first(num_points_), needs_it);
}

void PrefixCursor::keep_restore_point(std::uint32_t num_tokens) {
  const std::uint32_t point = whole_blocks(num_tokens);
  const auto points = std::span(points_).first(num_points_);
  if (point <= num_finite_ || num_points_ == kMostPoints || std::ranges::count(points, point) != 0) return;
  points_[num_points_++] = point;
}

void PrefixCursor::drop_behind(const kv::PrefixIndex& index, std::uint32_t position) {
  // The sequence may have to start again at a multiple of 16: forget_residual_group(). When it ends, others are to go
  // on behind its last full block.
  const std::uint32_t from = std::min(position - position % kGroupTokens, whole_blocks(position));
  for (std::uint32_t group = 0; group < table_.num_groups(); ++group) {
    const std::uint32_t end =
        std::min(table_.groups()[group].first_needed(from) / table_.block_tokens(), table_.size(group));
    for (std::uint32_t row = first_held_[group]; row < end; ++row) {
      const BlockId block = table_.block(group, row);
      if (block != kNoBlock) {
        if (is_kept(index, group, row)) continue;
        table_.drop(group, row, /*cold=*/!index.is_bundled(block));
      }
      if (row == first_held_[group]) ++first_held_[group];
    }
  }
}

void PrefixCursor::drop_restore_points(const kv::PrefixIndex& index, std::uint32_t position) {
  keeps_restore_points_ = false;
  drop_behind(index, position);
}

void PrefixCursor::forget_blocks() {
  num_finite_ = 0;
  publishes_ = may_publish_;
  forget_swapped_blocks();
}

void PrefixCursor::forget_swapped_blocks() {
  num_published_ = 0;
  last_entry_ = kv::PrefixIndex::kRoot;
  std::ranges::fill(first_held_, 0u);
}

}  // namespace quire::schedule
