#include "core/kv/block_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace quire::kv {
namespace {

class SharedBlockTableTest : public ::testing::Test {
 protected:
  RoleScope role_{engine_role};
};

TEST_F(SharedBlockTableTest, AForkSharesTheBlocksOfItsTokensAndNoMore) {
  BlockPool pool(8, 4);
  BlockTable parent(pool);
  ASSERT_TRUE(parent.grow_to(12).ok());
  for (const auto& [tokens, blocks] : {std::pair(0u, 0u), std::pair(1u, 1u), std::pair(4u, 1u), std::pair(5u, 2u)}) {
    BlockTable fork(pool);
    fork.share(parent, tokens);
    EXPECT_EQ(fork.size(), blocks);
    EXPECT_EQ(pool.num_held(), 3u);
    EXPECT_EQ(pool.num_saved(), blocks);
  }
  EXPECT_EQ(pool.num_saved(), 0u);
}

TEST_F(SharedBlockTableTest, MakingABlockOwnLeavesTheSharedOneToTheOthers) {
  BlockPool pool(4, 4);
  BlockTable parent(pool);
  ASSERT_TRUE(parent.grow_to(6).ok());
  BlockTable fork(pool);
  fork.share(parent, 6);
  const BlockId shared = parent.blocks()[1];
  EXPECT_EQ(*fork.copy_on_write(0, 1), shared);
  EXPECT_EQ(parent.blocks()[1], shared);
  EXPECT_NE(fork.blocks()[1], shared);
  EXPECT_EQ(pool.holders(shared), 1u);
  EXPECT_EQ(pool.holders(fork.blocks()[1]), 1u);
  EXPECT_EQ(pool.holders(parent.blocks()[0]), 2u);
}

TEST_F(SharedBlockTableTest, WithoutAFreeBlockMakingOneOwnFailsAndNothingChanges) {
  BlockPool pool(2, 4);
  BlockTable parent(pool);
  ASSERT_TRUE(parent.grow_to(8).ok());
  BlockTable fork(pool);
  fork.share(parent, 8);
  EXPECT_EQ(fork.copy_on_write(0, 1).error().code, Code::kOutOfBlocks);
  EXPECT_EQ(fork.blocks()[1], parent.blocks()[1]);
  EXPECT_EQ(pool.num_saved(), 2u);
}

TEST_F(SharedBlockTableTest, ADroppedBlockIsBackAtOnceAndLeavesAHole) {
  BlockPool pool(4, 4);
  BlockTable table(pool);
  ASSERT_TRUE(table.grow_to(12).ok());
  table.drop(0, 0, /*cold=*/false);
  table.drop(0, 0, /*cold=*/false);
  EXPECT_EQ(pool.num_held(), 2u);
  EXPECT_EQ(table.blocks()[0], kNoBlock);
  EXPECT_EQ(table.capacity_tokens(), 12u);
  BlockTable fork(pool);
  fork.share(table, 12);
  EXPECT_EQ(fork.blocks()[0], kNoBlock);
  fork.give_back_all();
  table.give_back_all();
  EXPECT_EQ(pool.num_held(), 0u);
}

TEST_F(SharedBlockTableTest, BlocksThatHeldDraftTokensAloneAreBackAndDoNotCount) {
  BlockPool pool(8, 4);
  {
    BlockTable table(pool);
    ASSERT_TRUE(table.grow_to(4).ok());
    for (const std::uint32_t with_draft : {20u, 5u, 8u}) {
      ASSERT_TRUE(table.grow_to(with_draft).ok());
      table.shrink_to(4);
      EXPECT_EQ(table.size(), 1u);
      EXPECT_EQ(pool.num_held(), 1u);
      EXPECT_EQ(pool.num_given_back(), 0u);
    }
    ASSERT_TRUE(table.grow_to(8).ok());
  }
  EXPECT_EQ(pool.num_given_back(), 2u);
  pool.check_invariants();
}

TEST_F(SharedBlockTableTest, WhoeverLetsGoFirstTheLastOneFreesAndNothingLeaks) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    BlockPool pool(64, 4);
    std::vector<std::unique_ptr<BlockTable>> tables;
    tables.push_back(std::make_unique<BlockTable>(pool));
    const std::uint32_t tokens = 1 + random() % 40;
    ASSERT_TRUE(tables[0]->grow_to(tokens).ok());
    for (int fork = 0; fork < 6; ++fork) {
      tables.push_back(std::make_unique<BlockTable>(pool));
      tables.back()->share(*tables[random() % (tables.size() - 1)], tokens);
      if (random() % 2) (void)tables.back()->copy_on_write(0, tables.back()->size() - 1);
    }
    std::shuffle(tables.begin(), tables.end(), random);
    while (!tables.empty()) {
      tables.pop_back();
      pool.check_invariants();
    }
    ASSERT_EQ(pool.num_empty(), 64u) << "seed " << seed;
    ASSERT_EQ(pool.num_saved(), 0u);
  }
}

class GroupsOfABlockTableTest : public ::testing::Test {
 protected:
  using Kind = CacheGroup::Kind;
  RoleScope role_{engine_role};
  BlockPool pool_{16, 4, {CacheGroup{}, {Kind::kWindow, 6}}};
  BlockTable table_{pool_};
};

TEST_F(GroupsOfABlockTableTest, FullGroupsGrowToAllTokensAndOthersToTheirOwnNumber) {
  const BlockTable::Reach reach{20, 0, 3};  // of the window's group 9 tokens
  EXPECT_EQ(table_.num_missing(reach), 5u + 3u);
  ASSERT_TRUE(table_.grow_to(reach).ok());
  EXPECT_EQ(table_.size(0), 5u);
  EXPECT_EQ(table_.size(1), 3u);
  EXPECT_EQ(table_.num_rows(), 5u);
  EXPECT_EQ(table_.num_held(), 8u);
  EXPECT_EQ(pool_.num_held(), 8u);
  EXPECT_EQ(table_.block(1, 3), kNoBlock);
  EXPECT_EQ(table_.num_missing(BlockTable::all_of(20)), 2u);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_NE(table_.blocks(0)[i], table_.blocks(1)[i]);
}

TEST_F(GroupsOfABlockTableTest, GrowingTakesAllThatIsMissingOrNothing) {
  EXPECT_EQ(table_.grow_to(36).error().code, Code::kOutOfBlocks);
  EXPECT_EQ(pool_.num_held(), 0u);
  EXPECT_TRUE(table_.grow_to(32).ok());
  EXPECT_EQ(pool_.num_free(), 0u);
}

TEST_F(GroupsOfABlockTableTest, ARowIsAdoptedWithoutTheBlocksThatNobodyReads) {
  const BlockId full = *pool_.take();
  table_.adopt(std::vector{full, kNoBlock});
  EXPECT_EQ(pool_.holders(full), 2u);
  EXPECT_EQ(table_.num_held(), 1u);
  EXPECT_TRUE(table_.holds(full));
  pool_.give_back(full);
  table_.give_back_all();
  EXPECT_EQ(pool_.num_held(), 0u);
}

TEST_F(GroupsOfABlockTableTest, RejectedDraftsAndTheLastRowLeaveEveryColumn) {
  ASSERT_TRUE(table_.grow_to({20, 0, 6}).ok());
  table_.shrink_to(13);
  EXPECT_EQ(table_.size(0), 4u);
  EXPECT_EQ(table_.size(1), 3u);
  table_.give_back_last_row();
  EXPECT_EQ(table_.size(0), 3u);
  EXPECT_EQ(table_.size(1), 3u) << "its last row is an earlier one";
  table_.give_back_last_row();
  EXPECT_EQ(table_.size(0), 2u);
  EXPECT_EQ(table_.size(1), 2u);
  EXPECT_EQ(pool_.num_held(), 4u);
}

}  // namespace
}  // namespace quire::kv
