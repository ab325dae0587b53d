#include "core/speculate/depth/best_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "core/speculate/depth/acceptance.h"
#include "core/speculate/depth/calibration.h"

namespace quire::speculate {
namespace {

using sample::TokenTree;
using Paths = std::multiset<std::vector<TokenId>>;

std::vector<TokenId> path_of(const TokenTree& tree, int node) {
  std::vector<TokenId> out;
  for (; node != TokenTree::kRoot; node = tree.parent(static_cast<std::uint32_t>(node))) {
    out.insert(out.begin(), tree.token(static_cast<std::uint32_t>(node)));
  }
  return out;
}

// Each with its number and what tells its node.
std::multiset<std::pair<int, float>> lookahead_nodes_of(const TokenTree& tree) {
  std::multiset<std::pair<int, float>> out;
  for (std::uint32_t i = 0; i < tree.size(); ++i) {
    if (tree.is_lookahead_node(i)) out.emplace(tree.lookahead_node(i), tree.likely(i));
  }
  return out;
}

Paths paths_of(const TokenTree& tree) {
  Paths out;
  for (std::uint32_t i = 0; i < tree.size(); ++i) out.insert(path_of(tree, static_cast<int>(i)));
  return out;
}

TEST(PutBestFirst, KeepsTheTreeAndSortsItByWhatNodesPromise) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    TokenTree tree;
    const auto size = std::uniform_int_distribution<std::uint32_t>(0, TokenTree::kMaxNodes)(random);
    std::vector<double> gains;
    for (std::uint32_t i = 0; i < size; ++i) {
      const int parent = std::uniform_int_distribution<int>(-1, static_cast<int>(i) - 1)(random);
      tree.add(std::uniform_int_distribution<TokenId>(0, 5)(random), parent, static_cast<float>(i));
      gains.push_back(std::uniform_int_distribution<int>(0, 9)(random) / 10.0);
      if (random() % 3 == 0) tree.make_lookahead_node(i, static_cast<std::uint8_t>(random() % 64));
    }
    // The promise of a node: the least on its path. Told by `likely`, which is unique.
    std::vector<double> expected(size);
    for (std::uint32_t i = 0; i < size; ++i) {
      expected[i] = gains[i];
      for (std::uint32_t j = 0; j < i; ++j) {
        if ((tree.ancestors(i) >> j & 1) != 0) expected[i] = std::min(expected[i], gains[j]);
      }
    }
    const Paths before = paths_of(tree);
    const auto lookahead_nodes_before = lookahead_nodes_of(tree);
    put_best_first(tree, gains);
    ASSERT_EQ(tree.size(), size);
    EXPECT_EQ(paths_of(tree), before);
    EXPECT_EQ(lookahead_nodes_of(tree), lookahead_nodes_before);
    EXPECT_TRUE(std::is_sorted(gains.rbegin(), gains.rend()));
    for (std::uint32_t i = 0; i < size; ++i) EXPECT_EQ(gains[i], expected[static_cast<std::size_t>(tree.likely(i))]);
  }
}

TEST(Acceptance, FindsTheChancesOfAChain) {
  std::mt19937 random(7);
  Acceptance acceptance(0.998);
  for (int walk = 0; walk < 4000; ++walk) {
    std::uint64_t taken = 0;
    std::uint32_t depth = 0;
    while (depth < 6 && std::bernoulli_distribution(0.8)(random)) taken |= std::uint64_t{1} << depth++;
    acceptance.note_offer(6, 6);
    acceptance.note_verification(6, taken);
  }
  const Chances chances = acceptance.chances(nullptr, 10);
  EXPECT_NEAR(chances.ratio, 0.8, 0.03);
  // 500 effective walks: three standard errors. Beyond what was tried it goes on as before.
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_NEAR(chances.taken[i], std::pow(0.8, i + 1), 0.07) << i;
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_NEAR(chances.offered[i], 1, 1e-3);
}

TEST(Acceptance, OfANewSequenceIsThatOfAllAndThenItsOwn) {
  Acceptance all(0.99);
  for (int walk = 0; walk < 100; ++walk) all.note_verification(2, 0b11);
  const Chances others = all.chances(nullptr, 4);
  Acceptance one(0.97);
  EXPECT_NEAR(one.chances(&others, 4).taken[1], others.taken[1], 0.05);
  for (int walk = 0; walk < 40; ++walk) one.note_verification(2, 0);
  EXPECT_LT(one.chances(&others, 4).taken[0], 0.15);
}

TEST(Acceptance, KnowsHowOftenADrafterHasNothingToSay) {
  Acceptance acceptance(0.99);
  for (int i = 0; i < 200; ++i) acceptance.note_offer(4, i % 4 == 0 ? 2 : 0);
  const Chances chances = acceptance.chances(nullptr, 4);
  EXPECT_NEAR(chances.offered[0], 0.25, 0.05);
  EXPECT_NEAR(chances.offered[1], 0.25, 0.05);
  EXPECT_LT(chances.offered[2], 0.05);
}

TEST(Calibration, LearnsWhatTheWordOfADrafterIsWorth) {
  std::mt19937 random(3);
  Calibration calibration;
  EXPECT_EQ(calibration.chance(0.5), 0.5);
  for (int i = 0; i < 4000; ++i) {
    calibration.note(0.9, std::bernoulli_distribution(0.45)(random));
    calibration.note(0.1, std::bernoulli_distribution(0.2)(random));
  }
  EXPECT_NEAR(calibration.chance(0.9), 0.45, 0.07);
  EXPECT_NEAR(calibration.chance(0.1), 0.2, 0.06);
  EXPECT_LE(calibration.chance(1), 1);
}

}  // namespace
}  // namespace quire::speculate
