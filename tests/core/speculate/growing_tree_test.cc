#include "core/speculate/growing_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "tests/core/speculate/book_tree.h"

namespace quire::speculate {
namespace {

using testing::by_the_book;
using testing::Grown;
using testing::nodes_of;
using testing::Odds;
using testing::Path;

Path path_of(const GrowingTree& tree, int candidate) {
  Path path;
  for (int i = candidate; i != GrowingTree::kRoot; i = tree.parent(i)) path.push_back(tree.token(i));
  std::ranges::reverse(path);
  return path;
}

sample::TokenTree grow(const TreeLimits& limits, const Odds& odds, std::size_t* num_grown = nullptr) {
  GrowingTree tree;
  tree.begin(limits);
  for (const auto& [token, log_likely] : odds({})) tree.add(GrowingTree::kRoot, token, log_likely);
  std::vector<int> frontier(1);
  while (true) {
    const std::span<const int> found = tree.next_frontier();
    frontier.assign(found.begin(), found.end());
    if (frontier.empty()) break;
    if (num_grown != nullptr) *num_grown += frontier.size();
    for (const int node : frontier) {
      for (const auto& [token, log_likely] : odds(path_of(tree, node))) tree.add(node, token, log_likely);
    }
  }
  sample::TokenTree out;
  tree.write(out);
  return out;
}

// Few values, so that there are many ties.
Odds random_odds(std::uint32_t seed, std::uint32_t width) {
  return [=](const Path& path) {
    std::uint32_t hash = seed;
    for (const TokenId token : path) hash = hash * 31 + static_cast<std::uint32_t>(token) + 7;
    std::mt19937 random(hash);
    std::vector<float> odds(width);
    for (float& value : odds) value = -0.25f * static_cast<float>(random() % 12);
    std::ranges::sort(odds, std::greater<>());
    std::vector<std::pair<TokenId, float>> children;
    for (std::uint32_t i = 0; i < width; ++i)
      children.emplace_back(static_cast<TokenId>(i + random() % 2 * 50), odds[i]);
    return children;
  };
}

TEST(GrowingTree, IsTheTreeThatTheBookHas) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const TreeLimits limits{.width = 1 + seed % 5, .max_depth = 1 + seed / 5 % 5, .max_nodes = 1 + seed % 23};
    const Odds odds = random_odds(seed, limits.width);
    const std::vector<Grown> expected = by_the_book(limits, odds);
    const std::vector<Grown> nodes = nodes_of(grow(limits, odds));
    ASSERT_EQ(nodes.size(), expected.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      EXPECT_EQ(nodes[i].path, expected[i].path);
      EXPECT_NEAR(nodes[i].score, std::exp(expected[i].score), 1e-6f);
    }
  }
}

TEST(GrowingTree, RunsNoNodeThatCannotStay) {
  const TreeLimits limits{.width = 4, .max_depth = 6, .max_nodes = 3};
  // One child is nearly sure: the three likeliest are a chain.
  const Odds odds = [](const Path&) {
    return std::vector<std::pair<TokenId, float>>{{1, -0.01f}, {2, -6.0f}, {3, -7.0f}, {4, -8.0f}};
  };
  std::size_t num_grown = 0;
  const sample::TokenTree tree = grow(limits, odds, &num_grown);
  EXPECT_EQ(tree.size(), 3u);
  EXPECT_TRUE(tree.is_chain());
  // Three that were among the best of the first level, two of the second, one of the third: then nobody new gets in.
  EXPECT_LE(num_grown, 7u);
}

TEST(GrowingTree, HoldsAtMostAsManyNodesAsATreeMay) {
  const TreeLimits limits{.width = 10, .max_depth = 7, .max_nodes = 1000};
  EXPECT_EQ(grow(limits, random_odds(1, 10)).size(), sample::TokenTree::kMaxNodes);
}

TEST(GrowingTree, IsEmptyWhereNobodyHasAGuess) {
  const TreeLimits limits{.width = 3, .max_depth = 3, .max_nodes = 8};
  EXPECT_TRUE(grow(limits, [](const Path&) { return std::vector<std::pair<TokenId, float>>(); }).empty());
}

}  // namespace
}  // namespace quire::speculate
