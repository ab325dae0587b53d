// PrefixIndex against a model of it that has no tree, no hash and no order: a list of what each block holds. Whatever
// was entered, dropped and evicted, a hit is the deepest position that the list allows, and its blocks are the right
// ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/kv/block_table.h"
#include "core/kv/prefix_index.h"

namespace quire::kv {
namespace {

using Kind = CacheGroup::Kind;
using Tokens = std::vector<TokenId>;

// The content of a block: K and V of one group for the last tokens of a path.
struct Content {
  CacheNamespace cache_namespace;
  std::uint32_t group = 0;
  Tokens path;  // from the first token of the prompt on
};

class Reference {
 public:
  Reference(std::vector<CacheGroup> groups, std::uint32_t block_tokens, bool partial_blocks)
      : groups_(std::move(groups)), block_tokens_(block_tokens), partial_blocks_(partial_blocks) {}

  void enter(BlockId block, Content content) { contents_[block] = std::move(content); }
  const Content& of(BlockId block) const { return contents_.at(block); }
  const std::map<BlockId, Content>& all() const { return contents_; }
  template <typename Gone>
  void remove(Gone gone) {
    std::erase_if(contents_, [&](const auto& one) { return gone(one.first); });
  }
  std::uint32_t row_of(const Content& content) const {
    return static_cast<std::uint32_t>(content.path.size() - 1) / block_tokens_;
  }

  // True if some block has the group's K and V of row `row` of a prompt, along `path`.
  bool has(CacheNamespace cache_namespace, std::uint32_t group, std::span<const TokenId> path) const {
    return std::ranges::any_of(contents_, [&](const auto& one) {
      return one.second.cache_namespace == cache_namespace && one.second.group == group &&
             std::ranges::equal(one.second.path, path);
    });
  }
  bool is_valid(CacheNamespace cache_namespace, std::span<const TokenId> tokens, std::uint32_t depth) const {
    if (!partial_blocks_ && depth % block_tokens_ != 0) return false;
    const std::uint32_t whole = depth / block_tokens_;
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      const std::uint32_t needed = groups_[group].first_needed(depth);
      for (std::uint32_t row = 0; row < whole; ++row) {
        if (needed == depth || needed >= (row + 1) * block_tokens_) continue;
        if (!has(cache_namespace, group, tokens.first((row + 1) * block_tokens_))) return false;
      }
    }
    if (depth == 0) return true;
    if (depth % block_tokens_ == 0) return is_on_a_path(cache_namespace, tokens.first(depth));
    // The last row's blocks are those of one entry, which begins with the tokens: one of each group.
    return std::ranges::any_of(contents_, [&](const auto& one) {
      const Tokens& path = one.second.path;
      if (one.second.cache_namespace != cache_namespace || row_of(one.second) != whole || path.size() < depth ||
          !std::ranges::equal(std::span(path).first(depth), tokens.first(depth))) {
        return false;
      }
      for (std::uint32_t group = 0; group < groups_.size(); ++group) {
        if (!has(cache_namespace, group, path)) return false;
      }
      return true;
    });
  }
  std::uint32_t num_hit(CacheNamespace cache_namespace, std::span<const TokenId> tokens) const {
    auto depth = static_cast<std::uint32_t>(tokens.size());
    while (depth > 0 && !is_valid(cache_namespace, tokens, depth)) --depth;
    return depth;
  }

 private:
  // A position where nothing is read is a hit only where the index knows the tokens.
  bool is_on_a_path(CacheNamespace cache_namespace, std::span<const TokenId> tokens) const {
    return std::ranges::any_of(contents_, [&](const auto& one) {
      return one.second.cache_namespace == cache_namespace && one.second.path.size() >= tokens.size() &&
             std::ranges::equal(std::span(one.second.path).first(tokens.size()), tokens);
    });
  }

  const std::vector<CacheGroup> groups_;
  const std::uint32_t block_tokens_;
  const bool partial_blocks_;
  std::map<BlockId, Content> contents_;
};

struct Reader {
  Reader(BlockPool& pool, CacheNamespace its_namespace, Tokens its_tokens)
      : cache_namespace(its_namespace), tokens(std::move(its_tokens)), table(pool) {}
  CacheNamespace cache_namespace;
  Tokens tokens;
  BlockTable table;
  EntryId last = PrefixIndex::kRoot;
};

class World {
 public:
  World(std::uint64_t seed, const PrefixIndexOptions& options) REQUIRES(engine_role)
      : random_(static_cast<unsigned>(seed)),
        block_tokens_(1 + below(5)),
        groups_(random_groups()),
        pool_(8 + below(60), block_tokens_, groups_),
        index_(pool_, options),
        reference_(groups_, block_tokens_, options.partial_blocks) {}

  void run(int turns) REQUIRES(engine_role) {
    for (int turn = 0; turn < turns; ++turn) {
      const std::uint32_t kind = below(10);
      if (kind < 4 || readers_.empty()) {
        begin();
      } else if (kind < 6) {
        end(below(static_cast<std::uint32_t>(readers_.size())));
      } else if (kind < 8) {
        drop(*readers_[below(static_cast<std::uint32_t>(readers_.size()))]);
      } else if (kind < 9) {
        mark(*readers_[below(static_cast<std::uint32_t>(readers_.size()))]);
      } else if (below(8) == 0) {
        pool_.evict_all();
      } else {
        BlockTable table(pool_);
        for (std::uint32_t i = below(pool_.num_free() + 1); i > 0; --i) table.extend(0);
      }
      check();
      look();
      if (::testing::Test::HasFailure()) return;
    }
    while (!readers_.empty()) end(0);
    pool_.evict_all();
    check();
    ASSERT_EQ(index_.num_entries(), 0u);
    ASSERT_EQ(pool_.num_empty(), pool_.num_blocks());
  }

  std::string groups_text() const {
    std::string text;
    for (const CacheGroup& group : groups_) {
      text += " " + std::to_string(static_cast<int>(group.kind)) + ":" + std::to_string(group.tokens);
    }
    return text;
  }
  std::uint64_t num_hits = 0;     // tokens
  std::uint64_t num_holes = 0;    // of lookups that agree with the tree further than they hit
  std::uint64_t num_partial = 0;  // hits inside a block

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  std::vector<CacheGroup> random_groups() {
    std::vector<CacheGroup> groups;
    const std::uint32_t num = 1 + below(4);
    for (std::uint32_t i = 0; i < num; ++i) {
      const auto kind = static_cast<Kind>(below(3));
      groups.push_back(kind == Kind::kFull ? CacheGroup{} : CacheGroup{kind, 1 + below(9)});
    }
    std::ranges::stable_partition(groups, &CacheGroup::full);
    return groups;
  }
  Tokens random_tokens() {
    Tokens tokens(1 + below(24));
    const std::uint32_t stem = below(3);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>((stem + i * i) % 2);
    for (std::uint32_t i = below(3) == 0 ? 0 : below(3); i > 0; --i) tokens[below(size_of(tokens))] ^= 1;
    return tokens;
  }
  static std::uint32_t size_of(const Tokens& tokens) { return static_cast<std::uint32_t>(tokens.size()); }

  // Removes blocks from the list that the index evicted. A block that was held all the time is never evicted.
  void forget_evicted(bool may_lose_held) REQUIRES(engine_role) {
    reference_.remove([&](BlockId block) REQUIRES(engine_role) {
      const bool gone = index_.entry(block).id == PrefixIndex::kRoot;
      EXPECT_FALSE(gone && !may_lose_held && held_.count(block) != 0) << "a held block was evicted";
      return gone;
    });
  }
  void note_held() {
    held_.clear();
    for (const auto& [block, content] : reference_.all()) {
      if (pool_.holders(block) > 0) held_[block] = true;
    }
  }

  void begin() REQUIRES(engine_role) {
    readers_.push_back(std::make_unique<Reader>(pool_, CacheNamespace{0, 1 + below(2)}, random_tokens()));
    Reader& reader = *readers_.back();
    const std::uint32_t size = size_of(reader.tokens);
    const PrefixIndex::Match match = index_.match(reader.cache_namespace, std::span(reader.tokens).first(size - 1));
    std::uint32_t row = 0;
    for (; row < match.entries.size(); ++row) {
      reader.table.adopt(match.blocks.subspan(row * groups_.size(), groups_.size()));
    }
    const std::uint32_t part = match.num_tokens % block_tokens_;
    const std::uint32_t needed = reader.table.num_missing(BlockTable::all_of(size)) +
                                 (part != 0 ? static_cast<std::uint32_t>(groups_.size()) : 0);
    if (needed > pool_.num_free()) {
      reader.table.give_back_all();
      readers_.pop_back();
      return;
    }
    note_held();
    for (std::uint32_t group = 0; part != 0 && group < groups_.size(); ++group) {
      ASSERT_TRUE(reader.table.copy_on_write(group, row - 1).ok());
    }
    ASSERT_TRUE(reader.table.grow_to(size).ok());
    forget_evicted(/*may_lose_held=*/part != 0);  // the copied ones were given back in between
    // Some groups' blocks were dropped before anything was known to be finite.
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      if (groups_[group].full() || below(3) != 0) continue;
      for (std::uint32_t i = below(reader.table.size(group)); i > 0; --i) reader.table.drop(group, i - 1, false);
    }
    publish(reader);
  }

  void publish(Reader& reader) REQUIRES(engine_role) {
    Tokens path;
    std::vector<BlockId> row(groups_.size());
    for (std::uint32_t i = 0; i * block_tokens_ < reader.tokens.size(); ++i) {
      const auto of_row = std::span(reader.tokens)
                              .subspan(std::size_t{i} * block_tokens_,
                                       std::min<std::size_t>(block_tokens_, reader.tokens.size() - i * block_tokens_));
      path.insert(path.end(), of_row.begin(), of_row.end());
      for (std::uint32_t group = 0; group < groups_.size(); ++group) row[group] = reader.table.block(group, i);
      note_held();
      const bool is_full = of_row.size() == block_tokens_;
      const auto entry = is_full ? index_.insert(reader.cache_namespace, reader.last, of_row, row)
                                 : index_.insert_partial(reader.cache_namespace, reader.last, of_row, row);
      forget_evicted(/*may_lose_held=*/false);
      for (std::uint32_t group = 0; group < groups_.size(); ++group) {
        const BlockId own = reader.table.block(group, i);
        if (own == kNoBlock) continue;
        if (row[group] != own) {
          const Content& there = reference_.of(row[group]);
          ASSERT_TRUE(there.path == path && there.group == group && there.cache_namespace == reader.cache_namespace);
          reader.table.replace(group, i, row[group]);
        } else if (index_.entry(own).id != PrefixIndex::kRoot) {
          reference_.enter(own, {reader.cache_namespace, group, path});
        }
      }
      forget_evicted(/*may_lose_held=*/true);
      if (!entry) break;
      reader.last = *entry;
    }
    index_.forget_if_empty(reader.last);
  }

  void drop(Reader& reader) REQUIRES(engine_role) {
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      for (std::uint32_t i = 0; (i + 1) * block_tokens_ <= groups_[group].first_needed(size_of(reader.tokens)); ++i) {
        const BlockId block = reader.table.block(group, i);
        if (block != kNoBlock) reader.table.drop(group, i, !index_.is_bundled(block));
      }
    }
    forget_evicted(true);
  }
  void mark(const Reader& reader) REQUIRES(engine_role) {
    index_.mark_restore_point(reader.last, size_of(reader.tokens));
  }
  void end(std::uint32_t i) REQUIRES(engine_role) {
    readers_[i]->table.give_back_all();
    readers_.erase(readers_.begin() + i);
    forget_evicted(true);
  }

  void check() REQUIRES(engine_role) {
    forget_evicted(true);
    index_.check_invariants();
    pool_.check_invariants();
    for (std::uint32_t i = 0; i < pool_.num_blocks(); ++i) {
      ASSERT_EQ(index_.entry(BlockId(i)).id != PrefixIndex::kRoot, reference_.all().count(BlockId(i)) != 0);
    }
    // A block that nobody holds can be reached: full groups have the whole path.
    for (const auto& [block, content] : reference_.all()) {
      ASSERT_FALSE(pool_.is_empty(block));
      if (pool_.holders(block) > 0) continue;
      for (std::uint32_t group = 0; group < groups_.size(); ++group) {
        if (!groups_[group].full()) continue;
        for (std::uint32_t row = 0; row < reference_.row_of(content); ++row) {
          const auto path = std::span(content.path).first(std::size_t{row + 1} * block_tokens_);
          ASSERT_TRUE(reference_.has(content.cache_namespace, group, path));
        }
      }
    }
  }

  void look() REQUIRES(engine_role) {
    for (int i = 0; i < 3; ++i) {
      const Tokens tokens = random_tokens();
      const CacheNamespace cache_namespace{0, 1 + below(2)};
      const PrefixIndex::Match match = index_.match(cache_namespace, tokens);
      const std::uint32_t expected = reference_.num_hit(cache_namespace, tokens);
      // Of children in one bucket only so many are compared.
      if (index_.options().hash_bits < 64) {
        ASSERT_LE(match.num_tokens, expected);
        ASSERT_TRUE(reference_.is_valid(cache_namespace, tokens, match.num_tokens));
      } else {
        ASSERT_EQ(match.num_tokens, expected);
      }
      ASSERT_EQ(match.entries.size(), blocks_for(match.num_tokens, block_tokens_));
      for (std::uint32_t at = 0; at < match.blocks.size(); ++at) check_block(match, at, cache_namespace, tokens);
      num_hits += match.num_tokens;
      num_holes += match.num_agreeing > match.num_tokens;
      num_partial += match.num_tokens % block_tokens_ != 0;
    }
  }
  void check_block(const PrefixIndex::Match& match, std::uint32_t at, CacheNamespace cache_namespace,
                   const Tokens& tokens) {
    const auto row = static_cast<std::uint32_t>(at / groups_.size());
    const auto group = static_cast<std::uint32_t>(at % groups_.size());
    const std::uint32_t needed = groups_[group].first_needed(match.num_tokens);
    const bool is_filled = (row + 1) * block_tokens_ > match.num_tokens;
    const bool is_read = is_filled || (needed < match.num_tokens && needed < (row + 1) * block_tokens_);
    ASSERT_EQ(match.blocks[at] != kNoBlock, is_read);
    if (!is_read) return;
    const Content& content = reference_.of(match.blocks[at]);
    const std::uint32_t num = std::min((row + 1) * block_tokens_, match.num_tokens);
    ASSERT_TRUE(content.cache_namespace == cache_namespace);
    ASSERT_EQ(content.group, group);
    ASSERT_EQ(reference_.row_of(content), row);
    ASSERT_TRUE(std::ranges::equal(std::span(content.path).first(num), std::span(tokens).first(num)));
  }

  std::mt19937 random_;
  const std::uint32_t block_tokens_;
  const std::vector<CacheGroup> groups_;
  BlockPool pool_;
  PrefixIndex index_;
  Reference reference_;
  std::map<BlockId, bool> held_;
  std::vector<std::unique_ptr<Reader>> readers_;
};

TEST(PrefixReference, AHitIsTheDeepestThatAListOfAllBlocksAllows) {
  const RoleScope role(engine_role);
  std::uint64_t num_hits = 0;
  std::uint64_t num_holes = 0;
  std::uint64_t num_partial = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const PrefixIndexOptions options{.hash_key = seed,
                                     .hash_bits = seed % 4 == 0 ? 2u : 64u,
                                     .keep = seed % 7 != 0,
                                     .partial_blocks = seed % 5 != 0};
    World world(seed, options);
    world.run(120);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed << ", groups" << world.groups_text();
    num_hits += world.num_hits;
    num_holes += world.num_holes;
    num_partial += world.num_partial;
  }
  EXPECT_GT(num_hits, 400u * 120u);
  EXPECT_GT(num_holes, 4000u);
  EXPECT_GT(num_partial, 4000u);
}

}  // namespace
}  // namespace quire::kv
