#include "core/kv/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "core/kv/block_table.h"

namespace quire::kv {
namespace {

class BlockPoolTest : public ::testing::Test {
 protected:
  RoleScope role_{engine_role};
};

TEST_F(BlockPoolTest, HandsOutEveryBlockOnceAndThenRefuses) {
  for (const std::uint32_t n : {1u, 2u, 7u, 64u}) {
    BlockPool pool(n, 16);
    std::set<BlockId> taken;
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto block = pool.take();
      ASSERT_TRUE(block);
      EXPECT_LT(block->value, n);
      taken.insert(*block);
    }
    EXPECT_EQ(taken.size(), n);
    const auto refused = pool.take();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kOutOfBlocks);
    EXPECT_EQ(pool.num_free(), 0u);
    for (const BlockId block : taken) pool.give_back(block);
    EXPECT_EQ(pool.num_free(), n);
    pool.check_invariants();
  }
}

TEST_F(BlockPoolTest, ASharedBlockIsFreeOnlyAfterItsLastHolderInAnyOrder) {
  BlockPool pool(2, 16);
  const BlockId block = *pool.take();
  pool.share(block);
  pool.share(block);
  EXPECT_EQ(pool.holders(block), 3u);
  pool.give_back(block);
  pool.give_back(block);
  EXPECT_EQ(pool.num_free(), 1u);
  pool.give_back(block);
  EXPECT_EQ(pool.num_free(), 2u);
}

TEST_F(BlockPoolTest, GivingBackOrSharingAFreeBlockDies) {
  BlockPool pool(2, 16);
  const BlockId block = *pool.take();
  pool.give_back(block);
  EXPECT_DEATH(pool.give_back(block), "CHECK failed");
  EXPECT_DEATH(pool.share(block), "CHECK failed");
}

TEST_F(BlockPoolTest, NothingLeaksUnderRandomTakingSharingAndGivingBack) {
  std::mt19937 random(20261121);
  BlockPool pool(40, 16);
  std::vector<BlockId> held;
  for (int step = 0; step < 20000; ++step) {
    const auto what = random() % 3;
    if (what == 0) {
      if (const auto block = pool.take()) held.push_back(*block);
    } else if (!held.empty()) {
      const std::size_t at = random() % held.size();
      if (what == 1) {
        pool.share(held[at]);
        held.push_back(held[at]);
      } else {
        pool.give_back(held[at]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    if (step % 100 == 0) pool.check_invariants();
    const std::set<BlockId> distinct(held.begin(), held.end());
    ASSERT_EQ(pool.num_held(), distinct.size());
  }
  for (const BlockId block : held) pool.give_back(block);
  EXPECT_EQ(pool.num_free(), 40u);
  pool.check_invariants();
}

using BlockTableTest = BlockPoolTest;

// The notebook's page-table example.
TEST_F(BlockPoolTest, EmptiesWhatIsKeptAndNothingThatIsHeld) {
  BlockPool pool(4, 16);
  std::vector<BlockId> emptied;
  pool.on_emptied([&emptied](BlockId block) { emptied.push_back(block); });
  pool.list_emptied();
  std::vector<BlockId> blocks;
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(*pool.take());
    pool.watch(blocks.back(), /*keep=*/true);
  }
  pool.give_back(blocks[2]);
  pool.give_back(blocks[0]);
  EXPECT_EQ(pool.evict_all(), 2u);
  EXPECT_EQ(emptied, (std::vector{blocks[2], blocks[0]})) << "the one wanted least recently first";
  EXPECT_EQ(pool.take_emptied(), emptied);
  EXPECT_EQ(pool.num_empty(), 3u);
  EXPECT_EQ(pool.num_held(), 1u);
  EXPECT_EQ(pool.num_evicted(), 0u) << "nobody needed them";
  pool.check_invariants();
  EXPECT_EQ(pool.evict_all(), 0u);
}

TEST_F(BlockTableTest, PagesTheNotebooksLengthsInThirtyBlocksAgainstSixtyFourReserved) {
  const std::vector<std::uint32_t> lengths = {32, 128, 64, 256};
  BlockPool pool(64, 16);
  std::vector<BlockTable> tables;
  for (const std::uint32_t length : lengths) {
    tables.emplace_back(pool);
    ASSERT_TRUE(tables.back().grow_to(length));
  }
  EXPECT_EQ(tables[0].blocks().size(), 2u);
  EXPECT_EQ(tables[1].blocks().size(), 8u);
  EXPECT_EQ(tables[2].blocks().size(), 4u);
  EXPECT_EQ(tables[3].blocks().size(), 16u);
  EXPECT_EQ(pool.num_held(), 30u);
  const std::uint32_t longest = *std::max_element(lengths.begin(), lengths.end());
  EXPECT_EQ(lengths.size() * blocks_for(longest, 16), 64u);
}

TEST_F(BlockTableTest, GrowsAtABlockBoundaryAndNotBefore) {
  BlockPool pool(8, 16);
  BlockTable table(pool);
  for (std::uint32_t tokens = 1; tokens <= 128; ++tokens) {
    ASSERT_TRUE(table.grow_to(tokens));
    EXPECT_EQ(table.blocks().size(), (tokens + 15) / 16);
    EXPECT_GE(table.capacity_tokens(), tokens);
    EXPECT_LT(table.capacity_tokens(), tokens + 16);
  }
  EXPECT_FALSE(table.grow_to(129));
}

TEST_F(BlockTableTest, AGrowthThatDoesNotFitChangesNothing) {
  BlockPool pool(4, 16);
  BlockTable table(pool);
  ASSERT_TRUE(table.grow_to(20));
  const auto refused = table.grow_to(5 * 16);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOutOfBlocks);
  EXPECT_EQ(table.blocks().size(), 2u);
  EXPECT_EQ(pool.num_free(), 2u);
  EXPECT_TRUE(table.grow_to(4 * 16));
}

TEST_F(BlockTableTest, GivesEveryBlockBackWhenItDies) {
  BlockPool pool(8, 16);
  {
    BlockTable table(pool);
    ASSERT_TRUE(table.grow_to(100));
    BlockTable moved(std::move(table));
    EXPECT_EQ(pool.num_held(), 7u);
  }
  EXPECT_EQ(pool.num_held(), 0u);
  pool.check_invariants();
}

// The lab's slot formula: slot(t) = table[t / P] * P + t mod P, at the edges of blocks and in their middle.
TEST_F(BlockTableTest, SlotsFollowTheLabsFormula) {
  BlockPool pool(16, 16);
  const BlockId first = *pool.take();  // so that ids are not the identity
  BlockTable table(pool);
  ASSERT_TRUE(table.grow_to(48));
  pool.give_back(first);
  for (const std::uint32_t t : {0u, 1u, 15u, 16u, 17u, 31u, 32u, 47u}) {
    EXPECT_EQ(table.slot(0, t), table.blocks()[t / 16].value * 16 + t % 16);
  }
}

}  // namespace
}  // namespace quire::kv
