#include "core/kv/prefix_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace quire::kv {
namespace {

constexpr std::uint32_t kBlock = 4;

class PrefixIndexTest : public testing::Test {
 protected:
  static std::vector<TokenId> tokens(std::initializer_list<TokenId> values) { return values; }

  // Blocks of `tokens`, taken, put in and held; the entry of the last.
  EntryId put(BlockPool& pool, PrefixIndex& index, std::span<const TokenId> tokens, std::vector<BlockId>& held) {
    EntryId parent = PrefixIndex::kRoot;
    for (; tokens.size() >= kBlock; tokens = tokens.subspan(kBlock)) {
      const BlockId block = *pool.take();
      const PrefixIndex::Hit hit = index.insert(parent, tokens.first(kBlock), block);
      parent = hit.entry;
      held.push_back(block);
    }
    return parent;
  }

  RoleScope role_{engine_role};
};

TEST_F(PrefixIndexTest, FindsTheLongestChainOfFullBlocksAndNoMoreThanAsked) {
  BlockPool pool(8, kBlock);
  PrefixIndex index(pool, {});
  std::vector<BlockId> held;
  const auto prompt = tokens({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  put(pool, index, prompt, held);
  EXPECT_EQ(index.match(prompt, 8).size(), 3u);
  EXPECT_EQ(index.match(prompt, 2).size(), 2u);
  EXPECT_EQ(index.match(std::span(prompt).first(11), 8).size(), 2u);
  EXPECT_EQ(index.match(std::span(prompt).first(3), 8).size(), 0u);
  EXPECT_EQ(index.match(tokens({1, 2, 3, 4, 5, 6, 7, 99}), 8).size(), 1u);
  EXPECT_EQ(index.match(tokens({5, 6, 7, 8}), 8).size(), 0u) << "the same tokens behind another parent";
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(index.match(prompt, 8)[i].block, held[i]);
}

TEST_F(PrefixIndexTest, CollidingBucketsAndParentsNeverServeAnotherPrompt) {
  for (const std::uint32_t bits : {0u, 1u, 8u, 64u}) {
    BlockPool pool(600, kBlock);
    PrefixIndex index(pool, {.hash_key = 7, .hash_bits = bits});
    std::mt19937 random(bits);
    std::map<std::vector<TokenId>, BlockId> truth;  // every prefix of full blocks that went in → its block
    std::vector<BlockId> held;
    for (int prompt_index = 0; prompt_index < 150; ++prompt_index) {
      std::vector<TokenId> prompt;
      EntryId parent = PrefixIndex::kRoot;
      for (std::size_t i = 0; i < 1 + random() % 4; ++i) {
        for (std::uint32_t k = 0; k < kBlock; ++k) prompt.push_back(static_cast<TokenId>(random() % 2));
        const BlockId block = *pool.take();
        const auto hit = index.insert(parent, std::span(prompt).last(kBlock), block);
        const auto [at, is_new] = truth.emplace(prompt, block);
        ASSERT_EQ(hit.block, at->second);
        ASSERT_EQ(hit.block == block, is_new);
        if (!is_new) pool.give_back(block);
        parent = hit.entry;
      }
      const auto hits = index.match(prompt, 100);
      ASSERT_EQ(hits.size(), prompt.size() / kBlock);
      for (std::size_t i = 0; i < hits.size(); ++i) {
        const std::vector<TokenId> prefix(prompt.begin(),
                                          prompt.begin() + static_cast<std::ptrdiff_t>((i + 1) * kBlock));
        ASSERT_EQ(hits[i].block, truth.at(prefix));
      }
    }
    EXPECT_EQ(index.num_entries(), truth.size());
  }
}

TEST_F(PrefixIndexTest, BlocksNobodyHoldsAreKeptUntilTheRoomIsNeededLeastRecentlyWantedFirst) {
  BlockPool pool(4, kBlock);
  PrefixIndex index(pool, {});
  std::vector<BlockId> old_blocks;
  std::vector<BlockId> new_blocks;
  const auto old_prompt = tokens({1, 1, 1, 1, 2, 2, 2, 2});
  const auto new_prompt = tokens({3, 3, 3, 3, 4, 4, 4, 4});
  put(pool, index, old_prompt, old_blocks);
  put(pool, index, new_prompt, new_blocks);
  pool.give_back(old_blocks[1]);
  pool.give_back(old_blocks[0]);
  pool.give_back(new_blocks[1]);
  pool.give_back(new_blocks[0]);
  EXPECT_EQ(pool.num_free(), 4u);
  EXPECT_EQ(pool.num_kept(), 4u);
  pool.check_invariants();

  for (const PrefixIndex::Hit& hit : index.match(old_prompt, 8)) pool.share(hit.block);  // wanted again
  pool.give_back(old_blocks[1]);
  pool.give_back(old_blocks[0]);
  EXPECT_EQ(*pool.take(), new_blocks[1]) << "the leaf before its parent";
  EXPECT_EQ(index.match(new_prompt, 8).size(), 1u);
  EXPECT_EQ(*pool.take(), new_blocks[0]);
  EXPECT_EQ(index.match(new_prompt, 8).size(), 0u);
  EXPECT_EQ(index.match(old_prompt, 8).size(), 2u);
  EXPECT_EQ(index.num_entries(), 2u);
  pool.check_invariants();
}

TEST_F(PrefixIndexTest, AHeldBlockIsNeverEmptied) {
  BlockPool pool(2, kBlock);
  PrefixIndex index(pool, {});
  std::vector<BlockId> held;
  const auto prompt = tokens({1, 2, 3, 4, 5, 6, 7, 8});
  put(pool, index, prompt, held);
  EXPECT_FALSE(pool.take());
  EXPECT_EQ(index.match(prompt, 8).size(), 2u);
}

TEST_F(PrefixIndexTest, AnEntrysNumberIsNeverUsedAgainSoThatAnOrphanIsNeverFoundBehindAnotherParent) {
  BlockPool pool(3, kBlock);
  PrefixIndex index(pool, {});
  const auto first = tokens({1, 1, 1, 1});
  const auto child = tokens({9, 9, 9, 9});
  const BlockId parent_block = *pool.take();
  const EntryId parent = index.insert(PrefixIndex::kRoot, first, parent_block).entry;
  const BlockId child_block = *pool.take();
  (void)index.insert(parent, child, child_block);
  pool.give_back(parent_block);  // against the usual order: the parent goes first
  (void)*pool.take();
  ASSERT_EQ(*pool.take(), parent_block);
  const EntryId again = index.insert(PrefixIndex::kRoot, tokens({2, 2, 2, 2}), parent_block).entry;
  EXPECT_NE(again, parent);
  EXPECT_EQ(index.match(tokens({2, 2, 2, 2, 9, 9, 9, 9}), 8).size(), 1u);
  EXPECT_EQ(index.match(tokens({1, 1, 1, 1, 9, 9, 9, 9}), 8).size(), 0u);
}

TEST_F(PrefixIndexTest, SharingAnEmptyBlockDies) {
  BlockPool pool(2, kBlock);
  const BlockId block = *pool.take();
  pool.give_back(block);
  EXPECT_DEATH(pool.share(block), "CHECK failed");
}

}  // namespace
}  // namespace quire::kv
