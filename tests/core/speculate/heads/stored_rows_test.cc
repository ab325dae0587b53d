#include "core/speculate/heads/stored_rows.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>

namespace quire::speculate::stored_rows_test {
namespace {

using flow::BlockOp;
using enum BlockOp::Kind;

constexpr std::uint32_t kBlocks = 6;
constexpr std::uint32_t kHostBlocks = 3;
constexpr std::uint32_t kTokens = 4;
constexpr std::uint32_t kHidden = 2;

TEST(StoredRows, NothingIsStoredAtFirst) {
  const StoredRows rows(kBlocks, kTokens, kHostBlocks, kHidden);
  for (std::uint32_t slot = 0; slot < kBlocks * kTokens; ++slot) EXPECT_EQ(rows.at(slot), 0u);
  EXPECT_TRUE(rows.kept(BlockId(0), 17).empty());
}

TEST(StoredRows, AFeatureComesBackUnderItsOwnHashOnly) {
  StoredRows rows(kBlocks, kTokens, kHostBlocks, kHidden);
  const std::span<float> kept = rows.keep(BlockId(2), 17);
  kept[0] = 1.0f;
  kept[1] = 2.0f;
  ASSERT_EQ(rows.kept(BlockId(2), 17).size(), kHidden);
  EXPECT_EQ(rows.kept(BlockId(2), 17)[1], 2.0f);
  EXPECT_TRUE(rows.kept(BlockId(2), 18).empty());
  EXPECT_TRUE(rows.kept(BlockId(3), 17).empty());
}

// Against blocks that hold their content themselves.
TEST(StoredRows, FollowsWhatHappensToBlocks) {
  struct Block {
    std::array<std::uint64_t, kTokens> rows{};
    std::uint64_t kept = 0;
    float feature = 0.0f;
  };
  std::mt19937 random(3);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  StoredRows rows(kBlocks, kTokens, kHostBlocks, kHidden);
  std::array<Block, kBlocks> blocks;
  std::array<Block, kHostBlocks> host;
  std::uint64_t next = 1;
  for (int turn = 0; turn < 5000; ++turn) {
    const std::uint32_t from = below(kBlocks);
    const std::uint32_t to = below(kBlocks);
    const std::uint32_t h = below(kHostBlocks);
    switch (below(6)) {
      case 0:
        blocks[to].rows[h] = next;
        rows.store(to * kTokens + h, next++);
        break;
      case 1:
        blocks[to].kept = next;
        blocks[to].feature = static_cast<float>(next);
        rows.keep(BlockId(to), next)[0] = static_cast<float>(next);
        ++next;
        break;
      case 2:
        blocks[to] = blocks[from];
        rows.track({kCopy, from, to});
        break;
      case 3:
        blocks[to] = {};
        rows.track({kPoison, 0, to});
        break;
      case 4:
        host[h] = blocks[from];
        rows.track({kSwapOut, from, h});
        break;
      default:
        blocks[to] = host[h];
        rows.track({kSwapIn, h, to});
    }
    for (std::uint32_t block = 0; block < kBlocks; ++block) {
      for (std::uint32_t i = 0; i < kTokens; ++i) ASSERT_EQ(rows.at(block * kTokens + i), blocks[block].rows[i]);
      if (blocks[block].kept == 0) continue;
      ASSERT_FALSE(rows.kept(BlockId(block), blocks[block].kept).empty());
      ASSERT_EQ(rows.kept(BlockId(block), blocks[block].kept)[0], blocks[block].feature);
    }
  }
}

TEST(Chained, DependsOnEveryTokenAndItsPlace) {
  std::map<std::uint64_t, int> seen;
  for (TokenId a = 0; a < 40; ++a) {
    for (TokenId b = 0; b < 40; ++b) ++seen[chained(chained(kChainRoot, a), b)];
  }
  EXPECT_EQ(seen.size(), 1600u);
  EXPECT_FALSE(seen.contains(0));
}

}  // namespace
}  // namespace quire::speculate::stored_rows_test
