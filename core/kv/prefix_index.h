// Which blocks already hold which tokens: the prefix cache. An entry is a block's tokens behind its parent entry.
//   entry(root, parent, tokens) → block;  a prompt's prefix is the longest chain of full entries from its root, and
//   behind it the entry, full or not, that goes on with most of the prompt's next tokens: its block is shared for as
//   many.
// A hit compares the root, the parent's entry id (64 bits, never reused) and the tokens: the hash only finds the
// bucket, so a collision can never serve another prompt. It is keyed per process, so that nobody can aim at a bucket
// either. Only committed tokens enter. Equal blocks are folded into one, so whoever holds an entry's block holds its
// ancestors' too (but for those that a window has passed by): blocks nobody holds grow old leaves first.
// Shape   at most one entry a block of the pool; a full entry has P tokens, a tail fewer. Nothing is allocated after
//         the constructor.
// Owner   the engine. Borrows the pool.
// Thread  engine.
// Source  vLLM's and SGLang's prefix caches, as ideas; comparing instead of trusting a hash is ours (vLLM
//         CVE-2025-25183).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/base/thread_role.h"
#include "core/kv/block_pool.h"
#include "core/kv/layout.h"

namespace quire::kv {

using EntryId = Id<struct EntryIdTag, std::uint64_t>;

struct PrefixIndexOptions {
  std::uint64_t hash_key = 0;    // drawn per process
  std::uint32_t hash_bits = 64;  // fewer only in tests: then buckets collide
  bool keep = true;              // entries outlive the holders of their blocks
  bool tails = true;             // part of a block may be shared; false where a block is stored as a whole
};

class PrefixIndex {
 public:
  static constexpr EntryId kRoot{0};

  struct Hit {
    EntryId entry;
    BlockId block;
    std::uint32_t num_tokens = 0;  // of the block that are the prompt's: P, but for the last hit
  };
  struct Entry {
    EntryId id;  // kRoot: no entry
    EntryId parent;
    CacheRoot root;
    std::uint32_t num_tokens = 0;
  };

  // Hears of full entries as they come and go. Tails come and go unheard: nobody but the index can tell what they are
  // worth.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_stored(const Entry& entry, std::span<const TokenId> tokens) = 0;  // [P]
    virtual void on_removed(EntryId entry) = 0;
  };

  PrefixIndex(BlockPool& pool, const PrefixIndexOptions& options);
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  // The blocks that hold the beginning of `tokens`; all but the last are full ones. Valid until the next call; share()
  // a hit's block before anything else takes one.
  std::span<const Hit> match(CacheRoot root, std::span<const TokenId> tokens) REQUIRES(engine_role);

  // `block` holds `tokens` [P] behind `parent`, committed; its caller holds it. Gives the entry: a new one, or the one
  // that was there. In the latter case `hit.block` is another block with the same content, to be used instead.
  Hit insert(CacheRoot root, EntryId parent, std::span<const TokenId> tokens, BlockId block) REQUIRES(engine_role);
  // `block` begins with `tokens` [1 .. P-1]. Nothing happens where another entry begins with them. The block's owner
  // may go on writing behind them.
  void insert_tail(CacheRoot root, EntryId parent, std::span<const TokenId> tokens, BlockId block)
      REQUIRES(engine_role);

  // One listener, set once; it outlives the last entry.
  void listen(Listener& listener) { listener_ = &listener; }

  // How many tokens of the block the index counts on: only what lies behind them may be written.
  std::uint32_t promised(BlockId block) const { return entries_[block.value].num_tokens; }

  std::uint32_t num_entries() const { return num_entries_; }
  const Entry& entry(BlockId block) const { return entries_[block.value]; }
  std::span<const TokenId> tokens(BlockId block) const {
    return std::span(tokens_).subspan(std::size_t{block.value} * block_tokens_, entries_[block.value].num_tokens);
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  static constexpr std::uint32_t kMaxSiblings = 32;  // entries looked at for a common beginning

  // Chains of blocks by bucket, linked through the blocks themselves.
  struct Chains {
    std::vector<std::uint32_t> heads;  // [buckets] block or kNone
    std::vector<std::uint32_t> next;   // [num_blocks]
    std::vector<std::uint32_t> previous;
    std::vector<std::uint32_t> bucket;

    void resize(std::size_t num_buckets, std::size_t num_blocks);
    void link(BlockId block, std::uint32_t to_bucket);
    void unlink(BlockId block);
  };

  std::uint32_t bucket_of(CacheRoot root, EntryId parent, std::span<const TokenId> tokens) const;
  bool is_child(BlockId block, CacheRoot root, EntryId parent) const;
  BlockId find_full(std::uint32_t bucket, CacheRoot root, EntryId parent, std::span<const TokenId> tokens) const;
  Hit longest_beginning(CacheRoot root, EntryId parent, std::span<const TokenId> tokens) const;
  void put(CacheRoot root, EntryId parent, std::span<const TokenId> tokens, BlockId block) REQUIRES(engine_role);
  void forget(BlockId block);

  BlockPool& pool_;
  const PrefixIndexOptions options_;
  const std::uint32_t block_tokens_;
  std::vector<Entry> entries_;   // [num_blocks] by block
  std::vector<TokenId> tokens_;  // [num_blocks, P]
  Chains full_;                  // full entries, by root, parent and all tokens
  Chains siblings_;              // all entries, by root, parent and first token; the newest first
  std::vector<Hit> hits_;
  std::uint32_t num_entries_ = 0;
  std::uint64_t next_entry_ = 1;
  Listener* listener_ = nullptr;
};

}  // namespace quire::kv
