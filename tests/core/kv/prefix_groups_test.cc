// The prefix index of models whose layers do not all keep the same positions.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "core/kv/block_table.h"
#include "core/kv/prefix_index.h"

namespace quire::kv {
namespace {

using Kind = CacheGroup::Kind;
constexpr std::uint32_t kRowTokens = 4;
constexpr CacheNamespace kOne{0, 1};

// A sequence that has computed all its tokens, from a hit on.
struct Prompt {
  Prompt(BlockPool& pool, std::vector<TokenId> its_tokens) : tokens(std::move(its_tokens)), table(pool) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(tokens.size()); }
  // Leaves the last token to run.
  std::uint32_t begin(PrefixIndex& index) REQUIRES(engine_role) {
    const PrefixIndex::Match match = index.match(kOne, std::span(tokens).first(size() - 1));
    for (std::size_t row = 0; row < match.entries.size(); ++row) {
      table.adopt(match.blocks.subspan(row * table.num_groups(), table.num_groups()));
    }
    const std::uint32_t hit = match.num_tokens;
    if (hit % kRowTokens != 0) {
      for (std::uint32_t group = 0; group < table.num_groups(); ++group)
        (void)table.copy_on_write(group, hit / kRowTokens);
    }
    EXPECT_TRUE(table.grow_to(size()).ok());
    return hit;
  }
  void publish(PrefixIndex& index, bool partial = true) REQUIRES(engine_role) {
    std::vector<BlockId> row(table.num_groups());
    for (std::uint32_t i = 0; i < blocks_for(size(), kRowTokens); ++i) {
      for (std::uint32_t group = 0; group < row.size(); ++group) row[group] = table.block(group, i);
      const auto of_row =
          std::span(tokens).subspan(std::size_t{i} * kRowTokens, std::min(kRowTokens, size() - i * kRowTokens));
      if (of_row.size() < kRowTokens) {
        if (partial) last = index.insert_partial(kOne, last.value(), of_row, row);
        return;
      }
      last = index.insert(kOne, last.value(), of_row, row);
      for (std::uint32_t group = 0; group < row.size(); ++group) {
        if (row[group] != table.block(group, i)) table.replace(group, i, row[group]);
      }
    }
  }
  // Gives back what the row behind its last token does not read.
  void drop_behind(const PrefixIndex& index) REQUIRES(engine_role) {
    for (std::uint32_t group = 0; group < table.num_groups(); ++group) {
      for (std::uint32_t i = 0; (i + 1) * kRowTokens <= table.groups()[group].first_needed(size()); ++i) {
        if (table.block(group, i) == kNoBlock) continue;
        table.drop(group, i, /*cold=*/!index.is_bundled(table.block(group, i)));
      }
    }
  }

  std::vector<TokenId> tokens;
  BlockTable table;
  std::optional<EntryId> last = PrefixIndex::kRoot;
};

class PrefixGroupsTest : public ::testing::Test {
 protected:
  void make(std::uint32_t num_blocks, std::vector<CacheGroup> groups, PrefixIndexOptions options = {}) {
    pool_ = std::make_unique<BlockPool>(num_blocks, kRowTokens, std::move(groups));
    index_ = std::make_unique<PrefixIndex>(*pool_, options);
  }
  // Tokens first, first + 1, …
  static std::vector<TokenId> text(std::uint32_t size, TokenId first = 0) {
    std::vector<TokenId> tokens(size);
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
  }
  static std::vector<TokenId> joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  // Runs a prompt: computes it, enters it with a restore point at its end, and gives everything back.
  std::uint32_t run(const std::vector<TokenId>& tokens) REQUIRES(engine_role) {
    Prompt reader(*pool_, tokens);
    const std::uint32_t hit = reader.begin(*index_);
    reader.publish(*index_);
    if (reader.last) index_->mark_restore_point(*reader.last, reader.size());
    reader.drop_behind(*index_);
    reader.table.give_back_all();
    check();
    return hit;
  }
  std::uint32_t num_hit(const std::vector<TokenId>& tokens) REQUIRES(engine_role) {
    return index_->match(kOne, tokens).num_tokens;
  }
  void take_and_give_back(std::uint32_t num_blocks) REQUIRES(engine_role) {
    BlockTable table(*pool_);
    for (std::uint32_t i = 0; i < num_blocks; ++i) table.extend(0);
    check();
  }
  void check() const {
    index_->check_invariants();
    pool_->check_invariants();
  }

  RoleScope role_{engine_role};
  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<PrefixIndex> index_;
};

// It needs the window's blocks alone, wherever those before the window have gone.
TEST_F(PrefixGroupsTest, AModelOfWindowsAloneFindsAPromptWhoseFirstBlocksAreGone) {
  make(16, {{Kind::kWindow, 6}});
  EXPECT_EQ(run(text(33)), 0u);
  take_and_give_back(
      13);  // all but three blocks: two of the window at the end, and one that is needed for the same prompt
  EXPECT_EQ(num_hit(text(33)), 33u);
  EXPECT_EQ(run(text(40)), 33u);
}

TEST_F(PrefixGroupsTest, AHitHasTheBlocksThatItsNextRowReadsAndNoneBefore) {
  make(64, {CacheGroup{}, {Kind::kWindow, 6}, {Kind::kChunk, 8}});
  Prompt first(*pool_, text(40));
  first.begin(*index_);
  first.publish(*index_);
  for (const std::uint32_t depth : {0u, 3u, 4u, 7u, 8u, 9u, 13u, 16u, 23u, 24u, 25u, 39u, 40u}) {
    const PrefixIndex::Match match = index_->match(kOne, std::span(first.tokens).first(depth));
    ASSERT_EQ(match.num_tokens, depth);
    for (std::uint32_t row = 0; row < match.entries.size(); ++row) {
      for (std::uint32_t group = 0; group < 3; ++group) {
        const std::uint32_t needed = first.table.groups()[group].first_needed(depth);
        const bool is_read = needed < depth && needed < (row + 1) * kRowTokens;
        EXPECT_EQ(match.blocks[row * 3 + group], is_read ? first.table.block(group, row) : kNoBlock)
            << "depth " << depth << ", row " << row << ", group " << group;
      }
    }
  }
}

TEST_F(PrefixGroupsTest, AHitIsTheDeepestPositionWithoutAHole) {
  make(64, {CacheGroup{}, {Kind::kWindow, 6}});
  Prompt first(*pool_, text(32));
  first.begin(*index_);
  for (const std::uint32_t i : {1u, 5u}) first.table.drop(1, i, false);  // before they are entered
  first.publish(*index_);
  for (std::uint32_t depth = 0; depth <= 32; ++depth) {
    // From a missing block on, no row goes on until the window has passed it.
    const std::uint32_t expected = depth <= 4 ? depth : depth < 13 ? 4 : depth <= 20 ? depth : depth < 29 ? 20 : depth;
    EXPECT_EQ(num_hit(text(depth)), expected) << depth;
  }
}

TEST_F(PrefixGroupsTest, AtTheBeginningOfAChunkNothingOfThatGroupIsNeeded) {
  make(64, {CacheGroup{}, {Kind::kChunk, 6}});
  Prompt first(*pool_, text(32));
  first.begin(*index_);
  for (std::uint32_t i = 0; i < 8; ++i) first.table.drop(1, i, false);
  first.publish(*index_);
  // Inside a block there would be nothing to go on filling.
  for (std::uint32_t depth = 0; depth <= 32; ++depth) EXPECT_EQ(num_hit(text(depth)), depth / 12 * 12) << depth;
}

TEST_F(PrefixGroupsTest, BlocksInNoBundleAreEvictedBeforeAllOthers) {
  make(24, {{Kind::kWindow, 6}});
  run(text(17, 100));
  run(text(33));
  // Two prompts of 5 and 9 blocks are cached. Of the second the window at its end is kept, and of the first.
  take_and_give_back(18);
  EXPECT_EQ(num_hit(text(33)), 33u);
  EXPECT_EQ(num_hit(text(17, 100)), 17u);
  EXPECT_EQ(num_hit(text(16)), 0u);
}

TEST_F(PrefixGroupsTest, ABundleGoesWholeButForWhatIsHeld) {
  make(12, {{Kind::kWindow, 10}});
  run(text(24));
  Prompt second(*pool_, text(30));
  EXPECT_EQ(second.begin(*index_), 24u);
  second.table.drop(0, 3, /*cold=*/false);  // it goes on without the first of its blocks
  ASSERT_TRUE(index_->is_bundled(second.table.block(0, 5)));
  const std::uint32_t num_evicted = static_cast<std::uint32_t>(pool_->num_evicted());
  take_and_give_back(pool_->num_free());
  EXPECT_GT(pool_->num_evicted(), num_evicted);
  EXPECT_FALSE(index_->is_bundled(second.table.block(0, 5)));
  EXPECT_EQ(index_->num_relied_tokens(second.table.block(0, 5)), kRowTokens) << "a held block stays";
}

TEST_F(PrefixGroupsTest, EvictingOneBlockOfABundleEvictsTheOthers) {
  make(20, {{Kind::kWindow, 10}});
  run(text(24, 500));
  run(text(24));
  const std::uint32_t num_cached = pool_->num_cached_blocks();
  const std::uint32_t num_empty = pool_->num_empty();
  ASSERT_EQ(num_hit(text(24, 500)), 24u);
  // Three blocks of each are in no bundle, and go first; then one of the older bundle, and with it the other two.
  take_and_give_back(num_empty + 6 + 1);
  EXPECT_EQ(num_hit(text(24, 500)), 0u);
  EXPECT_EQ(num_hit(text(24)), 24u);
  EXPECT_EQ(pool_->num_cached_blocks(), num_cached - 6 - 3);
}

TEST_F(PrefixGroupsTest, WherePromptsPartARestorePointIsKept) {
  make(64, {{Kind::kWindow, 6}});
  run(joined(text(20), text(20, 100)));
  const auto evict_unbundled = [&]() REQUIRES(engine_role) {
    std::uint32_t num_bundled = 0;
    for (std::uint32_t i = 0; i < pool_->num_blocks(); ++i) num_bundled += index_->is_bundled(BlockId(i));
    take_and_give_back(pool_->num_blocks() - num_bundled);
  };
  evict_unbundled();
  EXPECT_EQ(num_hit(joined(text(20), text(10, 300))), 0u) << "nobody knew where another prompt would part from it";
  run(joined(text(20), text(20, 200)));
  evict_unbundled();
  EXPECT_EQ(num_hit(joined(text(20), text(10, 300))), 20u);
  EXPECT_EQ(num_hit(joined(text(20), text(20, 100))), 40u);
  EXPECT_EQ(num_hit(joined(text(20), text(20, 200))), 40u);
}

TEST_F(PrefixGroupsTest, TheSamePromptBeginsBeforeItsLastTokenAndAContinuationBehindIt) {
  for (std::uint32_t size = 5; size < 40; ++size) {
    for (const CacheGroup& group :
         {CacheGroup{Kind::kWindow, 5}, CacheGroup{Kind::kChunk, 8}, CacheGroup{Kind::kWindow, 2}}) {
      make(64, {CacheGroup{}, group});
      run(text(size));
      take_and_give_back(pool_->num_empty());
      // As many as are in no bundle.
      const std::uint32_t first = group.first_needed(size - 1) / kRowTokens;
      take_and_give_back(pool_->num_empty() + first);
      EXPECT_EQ(num_hit(text(size - 1)), size - 1);
      EXPECT_EQ(num_hit(text(size)), size);
    }
  }
}

TEST_F(PrefixGroupsTest, EvictingABlockOfAFullGroupEvictsTheWindowBlocksBehindIt) {
  make(32, {CacheGroup{}, {Kind::kWindow, 6}});
  run(text(24));
  const PrefixIndex::Match match = index_->match(kOne, text(24));
  const BlockId third = match.blocks[2 * 2];
  pool_->evict(third);
  check();
  EXPECT_EQ(index_->num_entries(), 2u);
  EXPECT_EQ(pool_->num_cached_blocks(), 4u) << "two of the full group, and two before the window";
}

TEST_F(PrefixGroupsTest, AnEntryIsATombstoneAsLongAsItHasChildren) {
  make(16, {{Kind::kWindow, 6}});
  run(text(24));
  EXPECT_EQ(index_->num_entries(), 6u);
  take_and_give_back(pool_->num_empty() + 3);
  EXPECT_EQ(index_->num_entries(), 6u) << "three of them tombstones";
  EXPECT_EQ(num_hit(text(24)), 24u);
  pool_->evict_all();
  check();
  EXPECT_EQ(index_->num_entries(), 0u);
}

TEST_F(PrefixGroupsTest, WithoutAFreeEntryOthersAreEvictedOrNothingIsEntered) {
  make(4, {{Kind::kWindow, 2}});
  BlockTable held(*pool_);
  held.extend(0);
  std::optional<EntryId> last = PrefixIndex::kRoot;
  std::vector<BlockId> none{kNoBlock};
  std::vector<TokenId> tokens(kRowTokens);
  for (std::uint32_t i = 0; i < 7; ++i) {
    tokens[0] = static_cast<TokenId>(i);
    last = index_->insert(kOne, *last, tokens, none);
    ASSERT_TRUE(last);
  }
  std::vector<BlockId> row{held.block(0, 0)};
  tokens[0] = 7;
  last = index_->insert(kOne, *last, tokens, row);
  ASSERT_TRUE(last);
  check();
  EXPECT_FALSE(index_->has_free_entry());
  EXPECT_FALSE(index_->insert(kOne, *last, tokens, none));
  check();
  EXPECT_EQ(index_->num_entries(), 8u);
  held.give_back_all();
  std::vector<BlockId> other{held.extend(0)};
  EXPECT_TRUE(index_->insert(kOne, PrefixIndex::kRoot, tokens, other)) << "the chain gives way";
  check();
  EXPECT_EQ(index_->num_entries(), 1u);
}

TEST_F(PrefixGroupsTest, AChildOfAnEntryThatIsGoneIsNotEntered) {
  make(4, {{Kind::kWindow, 2}});
  std::vector<TokenId> tokens(kRowTokens);
  std::vector<BlockId> none{kNoBlock};
  const EntryId parent = *index_->insert(kOne, PrefixIndex::kRoot, tokens, none);
  index_->forget_if_empty(parent);
  EXPECT_FALSE(index_->has(parent));
  EXPECT_FALSE(index_->insert(kOne, parent, tokens, none));
  EXPECT_EQ(index_->num_entries(), 0u);
}

TEST_F(PrefixGroupsTest, AMissingBlockIsFilledInByTheNextThatHasIt) {
  make(32, {CacheGroup{}, {Kind::kWindow, 6}});
  Prompt first(*pool_, text(16));
  first.begin(*index_);
  first.table.drop(1, 2, false);
  first.publish(*index_);
  EXPECT_EQ(num_hit(text(16)), 8u);
  Prompt second(*pool_, text(16));
  EXPECT_EQ(second.begin(*index_), 8u);
  second.publish(*index_);
  EXPECT_EQ(num_hit(text(16)), 16u);
  EXPECT_EQ(second.table.block(0, 3), first.table.block(0, 3)) << "equal blocks are one";
  EXPECT_EQ(second.table.block(1, 3), first.table.block(1, 3));
  check();
}

}  // namespace
}  // namespace quire::kv
