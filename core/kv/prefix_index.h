// Which full blocks already hold which tokens: the prefix cache. An entry is a block's tokens behind its parent entry.
//   entry(parent, tokens) → block;  a prompt's prefix is the longest chain of entries from the root.
// A hit compares the parent's entry id (64 bits, never reused) and the block's tokens: the hash only finds the bucket, so a
// collision can never serve another prompt. It is keyed per process, so that nobody can aim at a bucket either.
// Only committed tokens enter. Equal blocks are folded into one, so whoever holds an entry's block holds its ancestors' too:
// blocks nobody holds grow old leaves first.
// Shape   at most one entry a block of the pool.
// Owner   the engine. Borrows the pool.
// Thread  engine.
// Source  vLLM's and SGLang's prefix caches, as ideas; comparing instead of trusting a hash is ours (vLLM CVE-2025-25183).
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/base/ids.h"
#include "core/base/thread_role.h"
#include "core/kv/block_pool.h"

namespace quire::kv {

using EntryId = Id<struct EntryIdTag, std::uint64_t>;

struct PrefixIndexOptions {
  std::uint64_t hash_key = 0;    // drawn per process
  std::uint32_t hash_bits = 64;  // fewer only in tests: then buckets collide
};

class PrefixIndex {
 public:
  static constexpr EntryId kRoot{0};

  struct Hit {
    EntryId entry;
    BlockId block;
  };

  PrefixIndex(BlockPool& pool, const PrefixIndexOptions& options);
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  // The full blocks that hold the beginning of `tokens`, longest chain from the root, at most `max_blocks`. Valid until the
  // next call; share() a hit's block before anything else takes one.
  std::span<const Hit> match(std::span<const TokenId> tokens, std::uint32_t max_blocks) REQUIRES(engine_role);

  // `block` holds `tokens` [P] behind `parent`, committed; its caller holds it. Gives the entry: a new one, or the one that was
  // there. In the latter case `hit.block` is another block with the same content, to be used instead.
  Hit insert(EntryId parent, std::span<const TokenId> tokens, BlockId block) REQUIRES(engine_role);

  std::uint32_t num_entries() const { return static_cast<std::uint32_t>(buckets_.size()); }

 private:
  struct Entry {
    EntryId id;
    EntryId parent;
    std::uint64_t bucket = 0;
    std::vector<TokenId> tokens;  // [P]
  };

  std::uint64_t bucket_of(EntryId parent, std::span<const TokenId> tokens) const;
  // The block of the entry, or nothing.
  const Entry* find(EntryId parent, std::span<const TokenId> tokens, BlockId& block) const;
  void forget(BlockId block);

  BlockPool& pool_;
  const PrefixIndexOptions options_;
  std::vector<Entry> entries_;                               // [num_blocks] by block; id 0: none
  std::unordered_multimap<std::uint64_t, BlockId> buckets_;  // bucket → blocks
  std::vector<Hit> hits_;
  std::uint64_t next_entry_ = 1;
};

}  // namespace quire::kv
