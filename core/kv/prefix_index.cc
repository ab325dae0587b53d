#include "core/kv/prefix_index.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::kv {
namespace {

std::uint32_t common_beginning(std::span<const TokenId> a, std::span<const TokenId> b) {
  const auto [end, _] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::uint32_t>(end - a.begin());
}

}  // namespace

PrefixIndex::PrefixIndex(BlockPool& pool, const PrefixIndexOptions& options)
    : pool_(pool),
      options_(options),
      block_tokens_(pool.block_tokens()),
      num_groups_(pool.num_groups()),
      tree_(2 * pool.num_blocks(), pool.block_tokens(), options.hash_key, options.hash_bits),
      slots_(std::size_t{tree_.capacity()} * num_groups_, kNoBlock),
      owners_(pool.num_blocks()),
      bundles_(pool.num_blocks()),
      run_begin_(num_groups_) {
  CHECK_GT(options.restore_tokens, 0u);
  path_.reserve(tree_.capacity());
  entries_.reserve(tree_.capacity());
  blocks_.reserve(slots_.size());
  pool.on_emptied([this](BlockId block) REQUIRES(engine_role) { forget(block); });
}

PrefixIndex::Match PrefixIndex::match(CacheNamespace cache_namespace, std::span<const TokenId> tokens) {
  path_.clear();
  std::ranges::fill(run_begin_, 0u);
  Deepest best;
  std::uint32_t depth = 0;
  std::uint32_t at = tree_.root();
  for (; tokens.size() - depth >= block_tokens_; depth += block_tokens_) {
    const std::uint32_t end = depth + block_tokens_;
    const std::uint32_t child = tree_.find(cache_namespace, at, tokens.subspan(depth, block_tokens_));
    if (child == kNone || !has_full_slots(child)) break;
    best.take(deepest_valid(child, depth, end), child);
    if (best.num_tokens < end) look_inside(cache_namespace, at, tokens.subspan(depth), depth, best);
    at = child;
    path_.push_back(at);
    extend_runs(at, end);
  }
  if (tokens.size() > depth) look_inside(cache_namespace, at, tokens.subspan(depth), depth, best);
  return give(best, depth);
}

// Looks for the child of `parent`, whose tokens begin at position `first`, that makes the deepest hit.
void PrefixIndex::look_inside(CacheNamespace cache_namespace, std::uint32_t parent, std::span<const TokenId> tokens,
                              std::uint32_t first, Deepest& best) const {
  if (!options_.partial_blocks) return;
  tree_.visit_children(cache_namespace, parent, tokens[0], [&](std::uint32_t child) {
    if (!has_full_slots(child)) return true;
    const std::uint32_t common = common_beginning(tree_.tokens(child), tokens);
    best.take(deepest_valid(child, first, first + common), child);
    return best.num_tokens < first + tokens.size();
  });
}

// The position `last` if a row can go on there, behind the path so far and the first tokens of an entry, which begin at
// `first`; else 0: nor can a row at any position inside the entry, since it would need no less. All slots of full
// groups are there, on the path too. Inside the entry the sequence needs all its slots: it goes on to fill copies of
// them.
std::uint32_t PrefixIndex::deepest_valid(std::uint32_t place, std::uint32_t first, std::uint32_t last) const {
  const bool is_inside = last < first + block_tokens_;
  for (std::uint32_t group = 0; group < num_groups_; ++group) {
    const std::uint32_t needed = pool_.groups()[group].first_needed(last);
    const bool is_there = slots_at(place)[group] != kNoBlock;
    if (needed < last ? !is_there || run_begin_[group] > needed : is_inside && !is_there) return 0;
  }
  return last;
}

void PrefixIndex::extend_runs(std::uint32_t place, std::uint32_t end) {
  for (std::uint32_t group = 0; group < num_groups_; ++group) {
    if (slots_at(place)[group] == kNoBlock) run_begin_[group] = end;
  }
}

PrefixIndex::Match PrefixIndex::give(const Deepest& best, std::uint32_t num_agreeing) {
  const std::uint32_t num_tokens = best.num_tokens;
  const std::uint32_t num_rows = blocks_for(num_tokens, block_tokens_);
  path_.resize(num_rows);
  if (num_rows > 0) path_.back() = best.last;
  entries_.clear();
  blocks_.clear();
  for (std::uint32_t row = 0; row < num_rows; ++row) {
    entries_.push_back(tree_.entry(path_[row]).id);
    for (std::uint32_t group = 0; group < num_groups_; ++group) {
      const std::uint32_t needed = pool_.groups()[group].first_needed(num_tokens);
      const bool is_filled = (row + 1) * block_tokens_ > num_tokens;  // rows from num_tokens on are stored there
      const bool is_read = is_filled || (needed < num_tokens && needed < (row + 1) * block_tokens_);
      blocks_.push_back(is_read ? slots_at(path_[row])[group] : kNoBlock);
    }
  }
  return {num_tokens, num_agreeing, entries_, blocks_};
}

std::optional<EntryId> PrefixIndex::insert(CacheNamespace cache_namespace, EntryId parent,
                                           std::span<const TokenId> tokens, std::span<BlockId> blocks) {
  CHECK_EQ(tokens.size(), std::size_t{block_tokens_});
  CHECK_EQ(blocks.size(), std::size_t{num_groups_});
  const std::uint32_t behind = tree_.place_of(parent);
  if (behind == kNone) return std::nullopt;
  std::uint32_t place = tree_.find(cache_namespace, behind, tokens);
  const bool is_new = place == kNone;
  if (is_new) place = make(cache_namespace, behind, tokens);
  if (place == kNone) return std::nullopt;
  std::uint32_t shorter = kNone;
  for (std::uint32_t group = 0; group < num_groups_; ++group) {
    if (blocks[group] == kNoBlock) continue;
    const BlockId there = slot(place, group);
    if (there == kNoBlock) {
      shorter = fill(place, group, blocks[group], shorter);
    } else {
      blocks[group] = there;
    }
  }
  if (shorter != kNone) forget_rest(shorter);
  if (is_new) mark_parting(behind);
  return tree_.entry(place).id;
}

std::optional<EntryId> PrefixIndex::insert_partial(CacheNamespace cache_namespace, EntryId parent,
                                                   std::span<const TokenId> tokens, std::span<const BlockId> blocks) {
  CHECK(!tokens.empty() && tokens.size() < block_tokens_);
  const std::uint32_t behind = tree_.place_of(parent);
  if (!options_.partial_blocks || behind == kNone) return std::nullopt;
  std::uint32_t place = kNone;
  tree_.visit_children(cache_namespace, behind, tokens[0], [&](std::uint32_t child) {
    if (common_beginning(tree_.tokens(child), tokens) < tokens.size()) return true;
    for (std::uint32_t group = 0; group < num_groups_; ++group) {
      if (blocks[group] != kNoBlock && slots_at(child)[group] == kNoBlock) return true;  // it has less
    }
    place = child;
    return false;
  });
  if (place != kNone) return tree_.entry(place).id;
  place = make(cache_namespace, behind, tokens);
  if (place == kNone) return std::nullopt;
  std::uint32_t shorter = kNone;
  for (std::uint32_t group = 0; group < num_groups_; ++group) {
    if (blocks[group] != kNoBlock) shorter = fill(place, group, blocks[group], shorter);
  }
  if (shorter != kNone) forget_rest(shorter);
  mark_parting(behind);
  const EntryId entry = tree_.entry(place).id;
  remove_if_empty(place);
  return has(entry) ? std::optional(entry) : std::nullopt;
}

// An entry without slots. kNone: no place is free. Then `parent`, too, may be gone.
std::uint32_t PrefixIndex::make(CacheNamespace cache_namespace, std::uint32_t parent, std::span<const TokenId> tokens) {
  guarded_ = parent;
  for (std::uint32_t i = 0; i < kMaxEvictions && !tree_.has_free_place(); ++i) {
    if (!pool_.evict_oldest()) break;
  }
  guarded_ = kNone;
  const std::uint32_t place = tree_.make(cache_namespace, parent, tokens);
  if (place == kNone) remove_if_empty(parent);
  return place;
}

// Makes `block` a slot. It may be one of a partial entry until now, whose tokens are the first of this one's: returns
// that entry's place, for forget_rest(), and calls it for another one before; else `shorter`, the one before.
std::uint32_t PrefixIndex::fill(std::uint32_t place, std::uint32_t group, BlockId block, std::uint32_t shorter) {
  SlotOwner& owner = owners_[block.value];
  if (const SlotOwner before = owner; before.place != kNone) {
    CHECK(!tree_.is_full(before.place) && before.group == group);
    empty(before.place, group);
    if (shorter != kNone && shorter != before.place) forget_rest(shorter);
    shorter = before.place;
  }
  owner = {place, group};
  slot(place, group) = block;
  pool_.watch(block, options_.keep);
  if (listener_ != nullptr && group == 0 && tree_.is_full(place)) {
    listener_->on_stored(tree_.entry(place), tree_.tokens(place));
  }
  return shorter;
}

void PrefixIndex::empty(std::uint32_t place, std::uint32_t group) {
  owners_[slot(place, group).value] = {};
  slot(place, group) = kNoBlock;
  if (listener_ != nullptr && group == 0 && tree_.is_full(place)) listener_->on_removed(tree_.entry(place).id);
}

bool PrefixIndex::has_slots(std::uint32_t place) const {
  return std::ranges::any_of(slots_at(place), [](BlockId block) { return block != kNoBlock; });
}

bool PrefixIndex::has_full_slots(std::uint32_t place) const {
  for (std::uint32_t group = 0; group < num_groups_; ++group) {
    if (pool_.groups()[group].full() && slots_at(place)[group] == kNoBlock) return false;
  }
  return true;
}

// Two prompts part behind `parent` once that has a second child.
void PrefixIndex::mark_parting(std::uint32_t parent) {
  if (parent == tree_.root()) return;
  const std::uint32_t second = tree_.next_sibling(tree_.first_child(parent));
  if (second == kNone || tree_.next_sibling(second) != kNone) return;
  mark_restore_point_at_end(tree_.entry(parent).id);
}

void PrefixIndex::mark_restore_point_at_end(EntryId entry) {
  const std::uint32_t place = tree_.place_of(entry);
  if (place == kNone) return;
  mark_restore_point(entry, tree_.entry(place).row * block_tokens_ + tree_.entry(place).num_tokens);
}

void PrefixIndex::mark_restore_point(EntryId entry, std::uint32_t num_tokens) {
  const std::uint32_t last = tree_.place_of(entry);
  if (!options_.keep || last == kNone || last == tree_.root() || num_tokens == 0) return;
  const auto first_row = [&](std::uint32_t group, std::uint32_t position) {
    return pool_.groups()[group].first_needed(position) / block_tokens_;
  };
  for (std::uint32_t group = 0; group < num_groups_; ++group) {
    if (pool_.groups()[group].full() || pool_.groups()[group].first_needed(num_tokens) == num_tokens) continue;
    for (std::uint32_t at = last; at != tree_.root(); at = tree_.parent(at)) {
      if (tree_.entry(at).row < first_row(group, num_tokens)) break;
      if (slot(at, group) == kNoBlock) return;
    }
  }
  BlockId member = kNoBlock;
  for (std::uint32_t group = 0; group < num_groups_; ++group) {
    if (pool_.groups()[group].full()) continue;
    // The same prompt again runs its last token anew: what the row before reads is kept, too.
    for (std::uint32_t at = last; at != tree_.root(); at = tree_.parent(at)) {
      if (tree_.entry(at).row < first_row(group, num_tokens - 1)) break;
      if (slot(at, group) == kNoBlock) continue;
      bundles_.add(slot(at, group), member);
      member = slot(at, group);
      pool_.touch(member);
    }
  }
}

void PrefixIndex::touch(EntryId entry) {
  const std::uint32_t place = tree_.place_of(entry);
  if (place == kNone) return;
  for (const BlockId block : slots_at(place)) {
    if (block != kNoBlock) pool_.touch(block);
  }
}

void PrefixIndex::forget_if_empty(EntryId entry) {
  const std::uint32_t place = tree_.place_of(entry);
  if (place != kNone) remove_if_empty(place);
}

}  // namespace quire::kv
