// The prefix cache: maps tokens to the blocks that have their K and V. An entry is the tokens of one block, behind its
// parent entry (entry_tree.h); it has a slot for each group of layers: a block, or none.
//   entry(cache namespace, parent, tokens) → block or none, for each group
// A prompt's hit is the deepest position d at which a sequence can go on: every full group has its slots on the whole
// path, every other group those of positions [first_needed(d), d) (cache_group.h). If d lies inside an entry, the
// blocks of all groups are shared for its first tokens. Only committed tokens enter. Equal blocks are deduplicated, so
// that a sequence that holds an entry's block of a full group holds the blocks of its ancestors, too: of blocks without
// holders, leaves are evicted first.
// A restore point is a position whose window blocks are kept as one bundle: evicting one of them evicts the others that
// nobody holds. Restore points are where prompts end and part, and what callers name. Window blocks in no bundle are of
// little use, and are evicted before all others (BlockTable::drop()).
// Evicting a block of a full group evicts what stands behind it: no hit reaches that any more. An entry without slots
// goes once it has no children.
// Shape   at most 2 entries per block of the pool; a block is the slot of one entry at most. A full entry has P tokens,
//         a partial one fewer. Nothing is allocated after the constructor.
// Owner   the engine. Borrows the pool, which outlives the index.
// Thread  engine.
// Fails   insert(): none if no entry is free, or the parent is gone. A missing entry or slot only makes hits shorter.
// Source  ideas of vLLM's and SGLang's prefix caches, groups included; restore points and bundles are ours.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/base/kv_constants.h"
#include "core/base/thread_role.h"
#include "core/kv/block_pool.h"
#include "core/kv/bundles.h"
#include "core/kv/entry_tree.h"
#include "core/kv/layout.h"

namespace quire::kv {

struct PrefixIndexOptions {
  std::uint64_t hash_key = 0;    // random, per process
  std::uint32_t hash_bits = 64;  // fewer only in tests, so that buckets collide
  bool keep = true;              // blocks with an entry are cached when their last holder gives them back
  // Partial blocks may be shared. False for int4, where each sequence has its own residual group.
  bool partial_blocks = true;
  std::uint32_t restore_tokens = 1024;  // a long prompt has a restore point at each multiple
};

class PrefixIndex {
 public:
  static constexpr EntryId kRoot = EntryTree::kRoot;
  using Entry = EntryTree::Entry;

  struct Match {
    std::uint32_t num_tokens = 0;        // first tokens that need not run
    std::uint32_t num_agreeing = 0;      // first tokens, in whole blocks, that are those of entries, cached or not
    std::span<const EntryId> entries{};  // [rows] rows of `num_tokens` tokens; all but the last match in full
    std::span<const BlockId> blocks{};   // [rows, groups] kNoBlock: no row from num_tokens on reads it
  };

  // Receives the full entries that enter and leave, by the slots of the first group. Partial entries are not reported:
  // only this index can use them.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_stored(const Entry& entry, std::span<const TokenId> tokens) = 0;  // [P]
    virtual void on_removed(EntryId entry) = 0;
  };

  PrefixIndex(BlockPool& pool, const PrefixIndexOptions& options);
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  // Finds the blocks with which a sequence of these tokens can begin. Valid until the next call. The caller must
  // share() the blocks before any block is taken, which could evict them.
  Match match(CacheNamespace cache_namespace, std::span<const TokenId> tokens) REQUIRES(engine_role);

  // Enters the blocks [groups] of the committed `tokens` [P] behind `parent`. The caller holds them; kNoBlock: it has
  // none for this group. Returns the entry. Where that had a block already, with the same content, this one is in
  // `blocks` afterwards, to be used instead.
  std::optional<EntryId> insert(CacheNamespace cache_namespace, EntryId parent, std::span<const TokenId> tokens,
                                std::span<BlockId> blocks) REQUIRES(engine_role);
  // Enters blocks whose first tokens are `tokens` [1 .. P-1], unless another entry begins with them. The blocks' holder
  // may go on storing rows behind them. Returns the entry that begins with the tokens.
  std::optional<EntryId> insert_partial(CacheNamespace cache_namespace, EntryId parent, std::span<const TokenId> tokens,
                                        std::span<const BlockId> blocks) REQUIRES(engine_role);
  // Makes position `num_tokens` a restore point: it lies in the tokens of `entry`, or at their end. Does nothing if a
  // slot that a row there needs is missing.
  void mark_restore_point(EntryId entry, std::uint32_t num_tokens) REQUIRES(engine_role);
  void mark_restore_point_at_end(EntryId entry) REQUIRES(engine_role);  // of the tokens of the entry
  bool is_bundled(BlockId block) const { return bundles_.contains(block); }
  // Counts the blocks of the entry, if it is still there, as used just now.
  void touch(EntryId entry) REQUIRES(engine_role);
  // Removes the entry, if it is still there, unless it has slots or children; then its ancestors likewise.
  void forget_if_empty(EntryId entry) REQUIRES(engine_role);

  // Sets the one listener, once; it outlives the last entry.
  void listen(Listener& listener) { listener_ = &listener; }

  // Number of first tokens of the block that the index relies on: rows may be stored behind them only.
  std::uint32_t num_relied_tokens(BlockId block) const { return entry(block).num_tokens; }

  const PrefixIndexOptions& options() const { return options_; }
  std::uint32_t num_groups() const { return num_groups_; }
  bool has(EntryId entry) const { return tree_.place_of(entry) != EntryTree::kNone; }
  // True if the entry is there and has no children.
  bool is_leaf(EntryId entry) const { return has(entry) && tree_.first_child(tree_.place_of(entry)) == kNone; }
  bool has_free_entry() const { return tree_.has_free_place(); }
  std::uint32_t num_entries() const { return tree_.size(); }
  // The entry that has this block as a slot; its id is kRoot if there is none.
  const Entry& entry(BlockId block) const { return tree_.entry(place_of(block)); }
  std::span<const TokenId> tokens(BlockId block) const { return tokens_at(place_of(block)); }
  // Entries by place [0, num_places()): the id is kRoot where there is none.
  std::uint32_t num_places() const { return tree_.capacity(); }
  const Entry& entry_at(std::uint32_t place) const { return tree_.entry(place); }
  std::span<const TokenId> tokens_at(std::uint32_t place) const {
    return place == tree_.root() ? std::span<const TokenId>() : tree_.tokens(place);
  }
  std::span<const BlockId> slots_at(std::uint32_t place) const {  // [groups]
    return std::span(slots_).subspan(std::size_t{place} * num_groups_, num_groups_);
  }
  // True if the listener knows the entry.
  bool is_reported(std::uint32_t place) const { return tree_.is_full(place) && slots_at(place)[0] != kNoBlock; }

  // CHECKs that entries, slots and bundles agree with each other and with the pool.
  void check_invariants() const;

 private:
  static constexpr std::uint32_t kNone = EntryTree::kNone;
  static constexpr std::uint32_t kMaxEvictions = 16;  // blocks that are evicted for one entry, at most

  // The entry that has a block as its slot, and for which group.
  struct SlotOwner {
    std::uint32_t place = kNone;
    std::uint32_t group = 0;
  };

  // The deepest hit so far, and the entry of its last row.
  struct Deepest {
    std::uint32_t num_tokens = 0;
    std::uint32_t last = kNone;

    void take(std::uint32_t others, std::uint32_t its_last) {
      if (others > num_tokens) *this = {others, its_last};
    }
  };

  std::uint32_t place_of(BlockId block) const {
    const std::uint32_t place = owners_[block.value].place;
    return place == kNone ? tree_.root() : place;
  }
  BlockId& slot(std::uint32_t place, std::uint32_t group) { return slots_[std::size_t{place} * num_groups_ + group]; }
  bool has_slots(std::uint32_t place) const;
  bool has_full_slots(std::uint32_t place) const;
  std::uint32_t deepest_valid(std::uint32_t place, std::uint32_t first, std::uint32_t last) const;
  void extend_runs(std::uint32_t place, std::uint32_t end);
  void look_inside(CacheNamespace cache_namespace, std::uint32_t parent, std::span<const TokenId> tokens,
                   std::uint32_t first, Deepest& best) const;
  Match give(const Deepest& best, std::uint32_t num_agreeing);
  std::uint32_t make(CacheNamespace cache_namespace, std::uint32_t parent, std::span<const TokenId> tokens)
      REQUIRES(engine_role);
  std::uint32_t fill(std::uint32_t place, std::uint32_t group, BlockId block, std::uint32_t shorter)
      REQUIRES(engine_role);
  void empty(std::uint32_t place, std::uint32_t group);
  void mark_parting(std::uint32_t parent) REQUIRES(engine_role);
  // prefix_eviction.cc
  void forget(BlockId block) REQUIRES(engine_role);
  void free_bundle(BlockId block) REQUIRES(engine_role);
  void free_behind(std::uint32_t top) REQUIRES(engine_role);
  void free_slots(std::uint32_t place) REQUIRES(engine_role);
  void forget_rest(std::uint32_t shorter) REQUIRES(engine_role);
  std::uint32_t first_leaf(std::uint32_t place) const;
  void remove_if_empty(std::uint32_t place);

  BlockPool& pool_;
  const PrefixIndexOptions options_;
  const std::uint32_t block_tokens_;
  const std::uint32_t num_groups_;
  EntryTree tree_;
  std::vector<BlockId> slots_;     // [entries, groups]
  std::vector<SlotOwner> owners_;  // [num_blocks]
  Bundles bundles_;
  std::vector<std::uint32_t> path_;  // scratch of match(): places
  std::vector<EntryId> entries_;     // results of match()
  std::vector<BlockId> blocks_;      // likewise
  // match(): by group, the first position from which on every slot of the path so far is there.
  std::vector<std::uint32_t> run_begin_;
  bool is_freeing_ = false;        // free_behind() removes entries itself
  std::uint32_t guarded_ = kNone;  // an entry that is to get a child: it stays, though it may be empty
  Listener* listener_ = nullptr;
};

}  // namespace quire::kv
