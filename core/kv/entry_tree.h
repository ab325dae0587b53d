// The entries of the prefix cache as a tree: an entry is the tokens of one block behind those of its parent, in one
// cache namespace. It knows nothing of blocks.
// An entry is found by namespace, parent and tokens, which are compared: the hash only finds the bucket, so a collision
// never finds another prompt's entry. The hash has a key per process, so that no client can aim at one bucket.
// Shape   at most `capacity` entries, each at a place [0, capacity); the root is at place capacity. A full entry has P
//         tokens, a partial one fewer and no children. Nothing is allocated after the constructor. An id is never used
//         again; a child's id is higher than its parent's.
// Owner   PrefixIndex.
// Thread  engine.
// Fails   make(): kNone if no place is free.
// Source  comparing tokens instead of trusting a hash is ours (see CVE-2025-25183 of vLLM).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"

namespace quire::kv {

using EntryId = Id<struct EntryIdTag, std::uint64_t>;

class EntryTree {
 public:
  static constexpr EntryId kRoot{0};
  static constexpr std::uint32_t kNone = ~0u;
  static constexpr std::uint32_t kMaxSiblings = 32;  // children that visit_children() looks at

  struct Entry {
    EntryId id;  // kRoot: no entry
    EntryId parent;
    CacheNamespace cache_namespace;
    std::uint32_t num_tokens = 0;
    std::uint32_t row = 0;  // number of its ancestors: its tokens begin at position row * P
  };

  EntryTree(std::uint32_t capacity, std::uint32_t block_tokens, std::uint64_t hash_key, std::uint32_t hash_bits);
  EntryTree(const EntryTree&) = delete;
  EntryTree& operator=(const EntryTree&) = delete;

  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t size() const { return capacity_ - static_cast<std::uint32_t>(free_.size()); }
  bool has_free_place() const { return !free_.empty(); }

  // The place of a full entry; kNone: there is none.
  std::uint32_t find(CacheNamespace cache_namespace, std::uint32_t parent, std::span<const TokenId> tokens) const;
  // Calls visit(place) for the children of `parent` that begin with `first`, newest first, until it returns false.
  // Looks at the kMaxSiblings newest entries of a bucket.
  template <typename Visit>
  void visit_children(CacheNamespace cache_namespace, std::uint32_t parent, TokenId first, Visit visit) const {
    std::uint32_t looks = 0;
    for (std::uint32_t at = siblings_.heads[bucket_of(cache_namespace, parent, std::span(&first, 1))];
         at != kNone && looks < kMaxSiblings; at = siblings_.next[at], ++looks) {
      if (is_child(at, cache_namespace, parent) && tokens(at)[0] == first && !visit(at)) return;
    }
  }
  // Makes an entry of [1 .. P] tokens behind `parent`. The caller has looked for an equal one.
  std::uint32_t make(CacheNamespace cache_namespace, std::uint32_t parent, std::span<const TokenId> tokens);
  // Removes an entry without children.
  void remove(std::uint32_t place);

  // Place of an entry that may be gone (kNone). The root's is root().
  std::uint32_t place_of(EntryId id) const {
    if (id == kRoot) return root();
    const auto place = static_cast<std::uint32_t>(id.value % capacity_);
    return entries_[place].id == id ? place : kNone;
  }
  std::uint32_t root() const { return capacity_; }
  const Entry& entry(std::uint32_t place) const { return entries_[place]; }
  bool is_full(std::uint32_t place) const { return entries_[place].num_tokens == block_tokens_; }
  std::span<const TokenId> tokens(std::uint32_t place) const {
    return std::span(tokens_).subspan(std::size_t{place} * block_tokens_, entries_[place].num_tokens);
  }
  std::uint32_t parent(std::uint32_t place) const { return links_[place].parent; }
  std::uint32_t first_child(std::uint32_t place) const { return links_[place].first_child; }
  std::uint32_t next_sibling(std::uint32_t place) const { return links_[place].next; }

  // CHECKs that links, buckets and the free list agree.
  void check_invariants() const;

 private:
  // A hash table of entries: a doubly linked list per bucket, with its links in arrays by place.
  struct Chains {
    std::vector<std::uint32_t> heads;  // [buckets] place or kNone
    std::vector<std::uint32_t> next;   // [capacity]
    std::vector<std::uint32_t> previous;
    std::vector<std::uint32_t> bucket;

    void resize(std::size_t num_buckets, std::size_t capacity);
    void link(std::uint32_t at, std::uint32_t to_bucket);
    void unlink(std::uint32_t at);
  };
  struct Links {
    std::uint32_t parent = kNone;
    std::uint32_t first_child = kNone;  // the newest
    std::uint32_t next = kNone;
    std::uint32_t previous = kNone;
  };

  std::uint32_t bucket_of(CacheNamespace cache_namespace, std::uint32_t parent, std::span<const TokenId> tokens) const;
  bool is_child(std::uint32_t place, CacheNamespace cache_namespace, std::uint32_t parent) const;

  const std::uint32_t capacity_;
  const std::uint32_t block_tokens_;
  const std::uint64_t hash_key_;
  std::vector<Entry> entries_;       // [capacity + 1], the root last
  std::vector<Links> links_;         // likewise
  std::vector<TokenId> tokens_;      // [capacity, P]
  std::vector<std::uint32_t> free_;  // a stack of places
  Chains full_;                      // full entries, by namespace, parent and all tokens
  Chains siblings_;                  // all entries, by namespace, parent and first token; the newest first
  std::uint64_t next_entry_ = 1;
};

}  // namespace quire::kv
