#include "core/schedule/sequence/prefix_cursor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <vector>

#include "core/base/check.h"
#include "core/kv/block_pool.h"

namespace quire::schedule {
namespace {

constexpr std::uint32_t kBlockTokens = 4;

// A cursor with what it refers to: a sequence of tokens, and blocks for all of them unless it adopts some first.
struct Reader {
  Reader(kv::BlockPool& pool, std::vector<TokenId> its_tokens, std::optional<CacheNamespace> cache_namespace,
         bool may_publish)
      : tokens(std::move(its_tokens)), table(pool), cursor(cache_namespace, may_publish, tokens, table) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(tokens.size()); }
  void store_all() REQUIRES(engine_role) { CHECK(table.grow_to(size()).ok()); }

  std::vector<TokenId> tokens;
  kv::BlockTable table;
  PrefixCursor cursor;
};

class PrefixCursorTest : public ::testing::Test {
 protected:
  // Tokens first, first + 1, …
  Reader& make(std::uint32_t num_tokens, TokenId first = 0,
               std::optional<CacheNamespace> cache_namespace = CacheNamespace{}, bool may_publish = true) {
    std::vector<TokenId> tokens(num_tokens);
    std::iota(tokens.begin(), tokens.end(), first);
    return readers_.emplace_back(pool_, std::move(tokens), cache_namespace, may_publish);
  }
  // One whose blocks are in the index, as far as `num_finite` of its tokens go.
  Reader& published(std::uint32_t num_tokens, std::uint32_t num_finite, bool partial = false) REQUIRES(engine_role) {
    Reader& reader = make(num_tokens);
    reader.store_all();
    reader.cursor.note_finite(num_finite);
    reader.cursor.publish(index_, partial);
    return reader;
  }

  RoleScope role_{engine_role};
  kv::BlockPool pool_{64, kBlockTokens};
  kv::PrefixIndex index_{pool_, {}};
  std::deque<Reader> readers_;
};

TEST_F(PrefixCursorTest, EntersABlockOnceAllItsTokensAreFiniteAndNotOneSooner) {
  Reader& reader = make(12);
  reader.store_all();
  for (const std::uint32_t num_finite : {0u, 3u, 4u, 5u, 7u, 8u, 11u, 12u}) {
    reader.cursor.note_finite(num_finite);
    reader.cursor.publish(index_, /*partial=*/false);
    EXPECT_EQ(index_.num_entries(), num_finite / kBlockTokens) << num_finite;
  }
}

TEST_F(PrefixCursorTest, EntersThePartialBlockOnlyWhereThatIsAskedFor) {
  Reader& reader = published(7, 6);
  EXPECT_EQ(index_.num_entries(), 1u);
  reader.cursor.publish(index_, /*partial=*/true);
  EXPECT_EQ(index_.num_entries(), 2u);
  EXPECT_EQ(index_.num_relied_tokens(reader.table.blocks()[1]), 2u) << "the seventh token is not known to be finite";
}

TEST_F(PrefixCursorTest, AdoptsTheBlocksOfTheFirstTokensAndCountsTheseAsFinite) {
  const Reader& first = published(12, 12);
  Reader& second = make(20);
  EXPECT_EQ(second.cursor.adopt(index_, std::span(second.tokens).first(10)), 10u);
  ASSERT_EQ(second.table.size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(second.table.blocks()[i], first.table.blocks()[i]);
  EXPECT_EQ(second.cursor.num_finite(), 10u);
}

TEST_F(PrefixCursorTest, NumCachedIsTheNumberThatIsAdoptedAndTakesNothing) {
  published(12, 12);
  Reader& second = make(20);
  for (const std::uint32_t adoptable : {0u, 1u, 4u, 11u, 12u, 13u, 20u}) {
    const auto wanted = std::span(second.tokens).first(adoptable);
    EXPECT_EQ(second.cursor.num_cached(index_, wanted), std::min(adoptable, 12u));
    EXPECT_EQ(second.table.size(), 0u);
  }
  EXPECT_EQ(second.cursor.adopt(index_, second.tokens), 12u);
}

TEST_F(PrefixCursorTest, GoesOnToPublishBehindTheBlocksThatItAdopted) {
  published(8, 8);
  Reader& second = make(12);
  second.cursor.adopt(index_, second.tokens);
  second.store_all();
  second.cursor.note_finite(12);
  second.cursor.publish(index_, /*partial=*/false);
  EXPECT_EQ(index_.num_entries(), 3u);
  EXPECT_EQ(index_.entry(second.table.blocks()[2]).parent, index_.entry(second.table.blocks()[1]).id);
}

TEST_F(PrefixCursorTest, TakesTheEqualBlockOfTheIndexAndGivesItsOwnBack) {
  const Reader& first = published(8, 8);
  const std::uint32_t num_held = pool_.num_held();
  const Reader& second = published(8, 8);
  EXPECT_EQ(second.table.blocks()[0], first.table.blocks()[0]);
  EXPECT_EQ(second.table.blocks()[1], first.table.blocks()[1]);
  EXPECT_EQ(pool_.num_held(), num_held);
  EXPECT_EQ(index_.num_entries(), 2u);
}

TEST_F(PrefixCursorTest, WithoutACacheNamespaceNothingIsFoundAndNothingIsEntered) {
  published(8, 8);
  Reader& apart = make(8, 0, std::nullopt);
  EXPECT_FALSE(apart.cursor.publishes());
  EXPECT_EQ(apart.cursor.num_cached(index_, apart.tokens), 0u);
  EXPECT_EQ(apart.cursor.adopt(index_, apart.tokens), 0u);
  EXPECT_EQ(apart.table.size(), 0u);
  apart.store_all();
  apart.cursor.note_finite(8);
  apart.cursor.publish(index_, /*partial=*/true);
  EXPECT_EQ(index_.num_entries(), 2u);
}

TEST_F(PrefixCursorTest, OneThatMayNotPublishTakesBlocksAndEntersNone) {
  published(8, 8);
  Reader& fork = make(12, 0, CacheNamespace{}, /*may_publish=*/false);
  EXPECT_EQ(fork.cursor.adopt(index_, fork.tokens), 8u);
  fork.store_all();
  fork.cursor.note_finite(12);
  fork.cursor.publish(index_, /*partial=*/true);
  EXPECT_EQ(index_.num_entries(), 2u);
  fork.cursor.forget_blocks();
  EXPECT_FALSE(fork.cursor.publishes());
}

TEST_F(PrefixCursorTest, ARewoundTokenIsEnteredOnlyOnceItIsFiniteAgain) {
  Reader& reader = published(8, 4);
  reader.cursor.note_finite(8);
  reader.cursor.rewind(7);
  EXPECT_EQ(reader.cursor.num_finite(), 7u);
  reader.cursor.publish(index_, /*partial=*/false);
  EXPECT_EQ(index_.num_entries(), 1u);
  reader.cursor.rewind(8);
  EXPECT_EQ(reader.cursor.num_finite(), 7u) << "rewinding makes nothing finite";
}

TEST_F(PrefixCursorTest, AfterItForgotItsBlocksItBeginsAtTheRootAgain) {
  Reader& reader = published(8, 8);
  reader.cursor.forget_blocks();
  reader.table.give_back_all();
  EXPECT_EQ(reader.cursor.num_finite(), 0u);
  reader.cursor.publish(index_, /*partial=*/true);  // enters nothing: there is no finite token
  EXPECT_EQ(reader.cursor.adopt(index_, reader.tokens), 8u) << "they are cached";
  EXPECT_EQ(index_.num_entries(), 2u);
}

TEST_F(PrefixCursorTest, SwappedBlocksComeBackAsOthersThatItPublishesAgain) {
  Reader& reader = published(8, 8);
  reader.cursor.forget_swapped_blocks();
  reader.table.give_back_all();
  EXPECT_EQ(reader.cursor.num_finite(), 8u);
  reader.store_all();
  reader.cursor.publish(index_, /*partial=*/false);
  EXPECT_EQ(index_.num_entries(), 2u) << "equal entries were there: the table has their blocks";
  EXPECT_EQ(index_.num_relied_tokens(reader.table.blocks()[1]), kBlockTokens);
}

// The positions that the layers of a cursor's only group keep.
class WindowCursorTest : public PrefixCursorTest {
 protected:
  using Kind = kv::CacheGroup::Kind;

  ~WindowCursorTest() override { readers_.clear(); }
  void use(std::vector<kv::CacheGroup> groups, std::uint32_t num_blocks = 64, std::uint32_t restore_tokens = 1024) {
    own_pool_.emplace(num_blocks, kBlockTokens, std::move(groups));
    own_index_.emplace(*own_pool_, kv::PrefixIndexOptions{.restore_tokens = restore_tokens});
  }
  Reader& begin(std::uint32_t num_tokens, TokenId first = 0) REQUIRES(engine_role) {
    std::vector<TokenId> tokens(num_tokens);
    std::iota(tokens.begin(), tokens.end(), first);
    Reader& reader = readers_.emplace_back(*own_pool_, std::move(tokens), CacheNamespace{}, true);
    reader.cursor.adopt(*own_index_, std::span(reader.tokens).first(num_tokens - 1));
    return reader;
  }
  // Its tokens up to `num_tokens` are computed and finite, and what no later row reads is given back.
  void run(Reader& reader, std::uint32_t num_tokens, bool ends_prompt = false) REQUIRES(engine_role) {
    CHECK(reader.table.grow_to(num_tokens).ok());
    reader.cursor.note_finite(num_tokens);
    reader.cursor.publish(*own_index_, ends_prompt);
    reader.cursor.drop_behind(*own_index_, num_tokens);
    check();
  }
  void end(Reader& reader) REQUIRES(engine_role) {
    reader.cursor.mark_end(*own_index_);
    reader.table.give_back_all();
    check();
  }
  void evict_unbundled() REQUIRES(engine_role) {
    for (std::uint32_t i = 0; i < own_pool_->num_blocks(); ++i) {
      const BlockId block(i);
      if (own_pool_->is_empty(block) || own_pool_->holders(block) > 0 || own_index_->is_bundled(block)) continue;
      own_pool_->evict(block);
    }
    check();
  }
  std::uint32_t num_hit(std::uint32_t num_tokens, TokenId first = 0) REQUIRES(engine_role) {
    std::vector<TokenId> tokens(num_tokens);
    std::iota(tokens.begin(), tokens.end(), first);
    return own_index_->match(CacheNamespace{}, tokens).num_tokens;
  }
  void check() const {
    own_index_->check_invariants();
    own_pool_->check_invariants();
  }

  std::optional<kv::BlockPool> own_pool_;
  std::optional<kv::PrefixIndex> own_index_;
};

TEST_F(WindowCursorTest, OneThatWasSwappedWithoutTheBlocksBehindItsWindowPublishesWhatItHas) {
  use({{Kind::kWindow, 6}});
  Reader& reader = begin(24);
  run(reader, 20);
  ASSERT_EQ(reader.table.block(0, 1), kNoBlock);
  reader.cursor.forget_swapped_blocks();
  reader.table.give_back_all();
  own_pool_->evict_all();
  for (std::uint32_t row = 0; row < 5; ++row) {
    if (row < 2) {
      reader.table.skip(0);
    } else {
      reader.table.extend(0);
    }
  }
  run(reader, 24);
  EXPECT_TRUE(reader.cursor.publishes());
  EXPECT_EQ(num_hit(8), 0u);
  EXPECT_EQ(num_hit(24), 24u);
}

TEST_F(WindowCursorTest, ABlockIsDroppedOnceTheWindowHasPassedAllItsTokensAndNotOneSooner) {
  constexpr std::uint32_t kFrom = 32;  // the row from which the window looks back
  for (std::uint32_t window = 1; window <= kFrom + 1; ++window) {
    use({{Kind::kWindow, window}});
    Reader& reader = begin(48);
    run(reader, kFrom + 3);  // of the next four only the first three: they may have to run again
    const std::uint32_t lowest_seen = kFrom + 1 - window;
    for (std::uint32_t i = 0; i < reader.table.size(); ++i) {
      const bool unseen = (i + 1) * kBlockTokens <= lowest_seen;
      EXPECT_EQ(reader.table.blocks()[i] == kNoBlock, unseen) << "window " << window << ", block " << i;
    }
    readers_.clear();
  }
}

TEST_F(WindowCursorTest, TheFullGroupOfAModelWithAWindowKeepsAllItsBlocks) {
  use({kv::CacheGroup{}, {Kind::kWindow, 6}, {Kind::kChunk, 8}});
  Reader& reader = begin(40);
  run(reader, 40);
  for (std::uint32_t row = 0; row < 10; ++row) {
    EXPECT_NE(reader.table.block(0, row), kNoBlock);
    EXPECT_EQ(reader.table.block(1, row) == kNoBlock, row < 6) << row;  // (7 + 1) * 4 <= 32 + 1 - 6 is false for 6
    EXPECT_EQ(reader.table.block(2, row) == kNoBlock, row < 8) << row;
  }
}

TEST_F(WindowCursorTest, TheEndOfAPromptIsARestorePointThatOutlivesAllOtherBlocks) {
  for (const std::uint32_t size : {15u, 16u, 17u, 18u}) {
    use({{Kind::kWindow, 6}});
    Reader& reader = begin(size);
    run(reader, size, /*ends_prompt=*/true);
    end(reader);
    evict_unbundled();
    EXPECT_EQ(num_hit(size - 1), size - 1) << "the same prompt runs its last token again";
    EXPECT_EQ(num_hit(size), size);
    readers_.clear();
  }
}

TEST_F(WindowCursorTest, TheEndOfASequenceIsARestorePointInWholeBlocks) {
  use({{Kind::kWindow, 6}});
  Reader& reader = begin(35);
  run(reader, 10, /*ends_prompt=*/true);
  run(reader, 35);
  end(reader);
  evict_unbundled();
  EXPECT_EQ(num_hit(35), 32u);
}

TEST_F(WindowCursorTest, ALongPromptHasARestorePointAtEachMultiple) {
  use({{Kind::kWindow, 6}}, 64, /*restore_tokens=*/16);
  Reader& reader = begin(60);
  for (const std::uint32_t computed : {20u, 40u, 60u}) run(reader, computed, computed == 60);
  end(reader);
  evict_unbundled();
  for (std::uint32_t size = 0; size < 60; ++size) {
    // A position before a restore point, too, that needs no more than it: n - 1 for the same prompt again.
    const std::uint32_t hit = num_hit(size);
    EXPECT_GE(hit, size / 16 * 16) << size;
    EXPECT_LE(hit, size);
  }
  EXPECT_EQ(num_hit(28), 16u);
}

TEST_F(WindowCursorTest, ARestorePointThatAnotherSequenceAskedForIsKeptUntilItIsEntered) {
  use({{Kind::kWindow, 6}});
  Reader& reader = begin(60);
  reader.cursor.keep_restore_point(26);  // in whole blocks: 24
  CHECK(reader.table.grow_to(60).ok());
  reader.cursor.drop_behind(*own_index_, 56);  // the first rows, not known to be finite yet
  EXPECT_EQ(reader.table.block(0, 3), kNoBlock);
  EXPECT_NE(reader.table.block(0, 4), kNoBlock);
  EXPECT_NE(reader.table.block(0, 5), kNoBlock);
  EXPECT_EQ(reader.table.block(0, 6), kNoBlock);
  run(reader, 60, /*ends_prompt=*/true);
  EXPECT_EQ(reader.table.block(0, 5), kNoBlock) << "it is entered, and given back";
  end(reader);
  evict_unbundled();
  EXPECT_EQ(num_hit(30), 24u);
}

TEST_F(WindowCursorTest, UnderPressureBlocksOfRestorePointsToComeAreGivenBack) {
  use({{Kind::kWindow, 6}}, 64, /*restore_tokens=*/16);
  Reader& reader = begin(60);
  CHECK(reader.table.grow_to(60).ok());
  reader.cursor.drop_behind(*own_index_, 56);
  const std::uint32_t num_held = reader.table.num_held();
  reader.cursor.drop_restore_points(*own_index_, 56);
  EXPECT_LT(reader.table.num_held(), num_held);
  EXPECT_EQ(reader.table.num_held(), 5u)
      << "the window before 48, where it may have to begin again, and the rows behind";
}

// Before there were bundles, blocks behind the window were the oldest of the chain, and a match needed the whole chain.
TEST_F(WindowCursorTest, HitsOfAModelOfWindowsSurviveTheAgingOfTheBlocksBehindTheWindow) {
  use({{Kind::kWindow, 8}}, 24);
  Reader& first = begin(60);
  for (std::uint32_t computed = 12; computed <= 60; computed += 12) run(first, computed, computed == 60);
  end(first);
  for (TokenId other = 1000; other < 6000; other += 1000) {  // each takes more blocks than have never been used
    Reader& reader = begin(24, other);
    run(reader, 24, /*ends_prompt=*/true);
    end(reader);
    EXPECT_EQ(num_hit(60), 60u) << other;
    Reader& again = begin(61);
    EXPECT_EQ(again.cursor.num_finite(), 60u);
    again.table.give_back_all();
  }
}

}  // namespace
}  // namespace quire::schedule
