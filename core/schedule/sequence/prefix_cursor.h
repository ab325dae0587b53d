// The position of one sequence in the prefix index: the blocks that it takes from there, those that it has entered, and
// the number of its tokens whose K and V are known to be finite; and, for groups of layers that do not keep all
// positions, the blocks that no later row reads.
// Such blocks are given back once no row needs them. The ones that a restore point needs are kept until they are
// entered: a long prompt's are not known to be finite before its end. Restore points are where the sequence's prompt
// ends, where it ends itself, multiples of PrefixIndexOptions::restore_tokens, and where its tokens part from others'.
// Shape   the first num_published rows of the table are full entries of the index, a chain from kRoot; none of them
//         reaches beyond num_finite() tokens. Every block of a full group there is the entry's.
// Owner   a Sequence, whose tokens and block table it refers to: they outlive it.
// Thread  engine.
// Fails   never: without a cache namespace nothing is found, and nothing is entered. Nor is anything entered any more
//         once the index had no entry left.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/base/thread_role.h"
#include "core/kv/block_table.h"
#include "core/kv/prefix_index.h"

namespace quire::schedule {

class PrefixCursor {
 public:
  // No `cache_namespace`: the sequence shares no blocks. Without `may_publish` it takes blocks, and enters none.
  PrefixCursor(std::optional<CacheNamespace> cache_namespace, bool may_publish, const std::vector<TokenId>& tokens,
               kv::BlockTable& table)
      : cache_namespace_(cache_namespace),
        may_publish_(may_publish && cache_namespace.has_value()),
        tokens_(tokens),
        table_(table),
        publishes_(may_publish_),
        first_held_(table.num_groups()),
        row_(table.num_groups()) {}
  PrefixCursor(const PrefixCursor&) = delete;
  PrefixCursor& operator=(const PrefixCursor&) = delete;

  // Takes the blocks of the index that have the first of the `adoptable` tokens, if any. Returns the number of these
  // tokens. Only while the table is empty.
  std::uint32_t adopt(kv::PrefixIndex& index, std::span<const TokenId> adoptable) REQUIRES(engine_role);
  // Number of tokens that adopt() would find.
  std::uint32_t num_cached(kv::PrefixIndex& index, std::span<const TokenId> adoptable) const REQUIRES(engine_role);

  // True if the blocks of the table enter the index, where other sequences find them.
  bool publishes() const { return publishes_; }
  // Enters the full blocks, as far as their K and V are known to be finite, and with `partial` the partial block behind
  // them: there is a restore point then. If the index has an equal full block, the table takes that one and gives its
  // own back.
  void publish(kv::PrefixIndex& index, bool partial) REQUIRES(engine_role);
  // The sequence ends: there is a restore point behind its last full block.
  void mark_end(kv::PrefixIndex& index) REQUIRES(engine_role);

  // Number of first tokens whose K and V are known to be finite.
  std::uint32_t num_finite() const { return num_finite_; }
  void note_finite(std::uint32_t num_tokens) REQUIRES(engine_role) { num_finite_ = num_tokens; }
  // The rows behind the first `num_tokens` tokens are to be run again.
  void rewind(std::uint32_t num_tokens) REQUIRES(engine_role) { num_finite_ = std::min(num_finite_, num_tokens); }

  // Another sequence wants to begin with the first `num_tokens` tokens of this one.
  void keep_restore_point(std::uint32_t num_tokens) REQUIRES(engine_role);
  // Gives back the blocks that no row from `position` on reads, but those of restore points to come.
  void drop_behind(const kv::PrefixIndex& index, std::uint32_t position) REQUIRES(engine_role);
  // The same with those of restore points to come, none of which is kept any more.
  void drop_restore_points(const kv::PrefixIndex& index, std::uint32_t position) REQUIRES(engine_role);
  // The table is to give all blocks back, to be recomputed.
  void forget_blocks() REQUIRES(engine_role);
  // The table is to give all blocks back, their content copied to the host. It comes back in other blocks, which are
  // not in the index.
  void forget_swapped_blocks() REQUIRES(engine_role);

 private:
  static constexpr std::size_t kMostPoints = 8;

  std::span<const TokenId> tokens_of(std::uint32_t row) const {
    const std::uint32_t first = row * table_.block_tokens();
    return std::span(tokens_).subspan(first, std::min(table_.block_tokens(), num_finite_ - first));
  }
  bool publish_row(kv::PrefixIndex& index, std::uint32_t row) REQUIRES(engine_role);
  void publish_partial(kv::PrefixIndex& index) REQUIRES(engine_role);
  void mark(kv::PrefixIndex& index, kv::EntryId entry, std::uint32_t num_tokens) REQUIRES(engine_role);
  std::uint32_t whole_blocks(std::uint32_t num_tokens) const { return num_tokens - num_tokens % table_.block_tokens(); }
  bool is_restore_point(const kv::PrefixIndex& index, std::uint32_t num_tokens) const;
  bool is_kept(const kv::PrefixIndex& index, std::uint32_t group, std::uint32_t row) const;
  std::uint32_t next_multiple(const kv::PrefixIndex& index, std::uint32_t num_tokens) const;

  const std::optional<CacheNamespace> cache_namespace_;
  const bool may_publish_;
  const std::vector<TokenId>& tokens_;
  kv::BlockTable& table_;
  bool publishes_;
  bool keeps_restore_points_ = true;
  std::uint32_t num_finite_ = 0;
  std::uint32_t num_published_ = 0;                  // number of first rows of the table that are in the index
  kv::EntryId last_entry_ = kv::PrefixIndex::kRoot;  // entry of the last of them
  std::uint32_t num_marked_ = 0;                     // tokens before its last restore point
  std::uint32_t num_first_tokens_ = 0;               // when it was admitted: only these have multiples
  std::array<std::uint32_t, kMostPoints> points_{};  // restore points to come, besides the multiples
  std::size_t num_points_ = 0;
  std::vector<std::uint32_t> first_held_;  // [groups] no block is held in the rows before
  std::vector<BlockId> row_;               // [groups] scratch of publish()
};

}  // namespace quire::schedule
