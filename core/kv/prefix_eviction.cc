// PrefixIndex: the slots and entries that go when a block becomes empty.
#include <algorithm>

#include "core/base/check.h"
#include "core/kv/prefix_index.h"

namespace quire::kv {

// The pool has emptied a block that is a slot.
void PrefixIndex::forget(BlockId block) {
  const SlotOwner owner = owners_[block.value];
  CHECK_NE(owner.place, kNone);
  const EntryId entry = tree_.entry(owner.place).id;
  empty(owner.place, owner.group);
  free_bundle(block);
  if (is_freeing_) return;
  if (pool_.groups()[owner.group].full()) free_behind(owner.place);
  forget_if_empty(entry);  // it may have gone with its bundle
}

// Evicts the other blocks of its bundle that nobody holds: without this block they are of no use.
void PrefixIndex::free_bundle(BlockId block) {
  if (!bundles_.contains(block)) return;
  BlockId other = bundles_.next(block);
  bundles_.remove(block);
  while (other != block) {
    const BlockId after = bundles_.next(other);
    bundles_.remove(other);
    if (pool_.holders(other) == 0) pool_.evict(other);
    if (after == other) break;
    other = after;
  }
}

// A slot of a full group has gone: evicts the other slots of the entry and all those behind it, of blocks that nobody
// holds. Leaves first, so that empty entries can be removed on the way.
void PrefixIndex::free_behind(std::uint32_t top) {
  is_freeing_ = true;
  for (std::uint32_t at = first_leaf(top); at != top;) {
    const std::uint32_t sibling = tree_.next_sibling(at);
    const std::uint32_t after = sibling != kNone ? first_leaf(sibling) : tree_.parent(at);
    free_slots(at);
    if (!has_slots(at) && tree_.first_child(at) == kNone && at != guarded_) tree_.remove(at);
    at = after;
  }
  free_slots(top);
  is_freeing_ = false;
  remove_if_empty(top);
}

void PrefixIndex::free_slots(std::uint32_t place) {
  for (std::uint32_t group = 0; group < num_groups_; ++group) {
    const BlockId block = slot(place, group);
    if (block != kNoBlock && pool_.holders(block) == 0) pool_.evict(block);
  }
}

// Blocks of a partial entry have become slots of a longer one. If a full group's is among them, no hit reaches the
// others any more: they are slots no longer.
void PrefixIndex::forget_rest(std::uint32_t shorter) {
  const EntryId entry = tree_.entry(shorter).id;
  for (std::uint32_t group = 0; group < num_groups_ && has(entry) && !has_full_slots(shorter); ++group) {
    const BlockId block = slot(shorter, group);
    if (block == kNoBlock) continue;
    if (pool_.holders(block) == 0) {
      pool_.evict(block);
      continue;
    }
    free_bundle(block);
    empty(shorter, group);
    pool_.unwatch(block);
  }
  forget_if_empty(entry);
}

std::uint32_t PrefixIndex::first_leaf(std::uint32_t place) const {
  while (tree_.first_child(place) != kNone) place = tree_.first_child(place);
  return place;
}

// Removes an entry without slots and children, then its ancestors likewise.
void PrefixIndex::remove_if_empty(std::uint32_t place) {
  while (place != tree_.root() && place != guarded_ && !has_slots(place) && tree_.first_child(place) == kNone) {
    const std::uint32_t parent = tree_.parent(place);
    tree_.remove(place);
    place = parent;
  }
}

void PrefixIndex::check_invariants() const {
  tree_.check_invariants();
  std::size_t num_slots = 0;
  for (std::uint32_t place = 0; place < tree_.capacity(); ++place) {
    const Entry& entry = tree_.entry(place);
    for (std::uint32_t group = 0; group < num_groups_; ++group) {
      const BlockId block = slots_at(place)[group];
      if (block == kNoBlock) continue;
      ++num_slots;
      CHECK_NE(entry.id, kRoot);
      CHECK(owners_[block.value].place == place && owners_[block.value].group == group);
      CHECK(!pool_.is_empty(block));
    }
    if (entry.id != kRoot) CHECK(has_slots(place) || tree_.first_child(place) != kNone);
  }
  for (std::uint32_t i = 0; i < pool_.num_blocks(); ++i) {
    if (owners_[i].place != kNone) --num_slots;
    if (!bundles_.contains(BlockId(i))) continue;
    CHECK_NE(owners_[i].place, kNone);
    CHECK(!pool_.groups()[owners_[i].group].full());
  }
  CHECK_EQ(num_slots, std::size_t{0});
}

}  // namespace quire::kv
