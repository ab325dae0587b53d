#include "core/speculate/growing_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "tests/core/speculate/book_tree.h"

namespace quire::speculate::growing_tree_test {
namespace {

using testing::by_the_book;
using testing::Grown;
using testing::nodes_of;
using testing::Path;
using testing::RowDistribution;

Path path_of(const GrowingTree& tree, int candidate) {
  Path path;
  for (int i = candidate; i != GrowingTree::kRoot; i = tree.parent(i)) path.push_back(tree.token(i));
  std::ranges::reverse(path);
  return path;
}

sample::TokenTree grow(const TreeLimits& limits, const RowDistribution& odds, std::size_t* num_grown = nullptr) {
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
RowDistribution random_odds(std::uint32_t seed, std::uint32_t width) {
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
    const RowDistribution odds = random_odds(seed, limits.width);
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
  const RowDistribution odds = [](const Path&) {
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

TEST(GrowingTree, IsEmptyWhereNobodyHasADraftToken) {
  const TreeLimits limits{.width = 3, .max_depth = 3, .max_nodes = 8};
  EXPECT_TRUE(grow(limits, [](const Path&) { return std::vector<std::pair<TokenId, float>>(); }).empty());
}

// ---- of drawn guesses

// Tokens and chances by seed; what is left of the shape are parents.
std::vector<int> parents_of_drawn(GrowingTree& tree, const TreeLimits& limits, std::uint32_t seed) {
  tree.begin(limits, /*drawn=*/true);
  std::mt19937 random(seed);
  const auto add_children = [&](int parent) {
    for (std::uint32_t n = 0; n < tree.num_children(parent); ++n) {
      tree.add(parent, static_cast<TokenId>(random() % 90), -0.1f * static_cast<float>(random() % 50));
    }
  };
  add_children(GrowingTree::kRoot);
  while (true) {
    const std::span<const int> found = tree.next_frontier();
    const std::vector<int> frontier(found.begin(), found.end());
    if (frontier.empty()) break;
    EXPECT_LE(frontier.size(), limits.width);
    for (const int node : frontier) add_children(node);
  }
  sample::TokenTree out;
  tree.write(out);
  std::vector<int> parents;
  for (std::uint32_t i = 0; i < out.size(); ++i) parents.push_back(out.parent(i));
  return parents;
}

TEST(GrowingTree, OfDrawnDraftTokensHasTheShapeThatTheBookGivesFixedChances) {
  GrowingTree tree;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const TreeLimits limits{.width = 1 + seed % 6, .max_depth = 1 + seed / 6 % 6, .max_nodes = 1 + seed * 7 % 64};
    const RowDistribution by_place = [&](const Path&) {  // log 0.6, log 0.4
      std::vector<std::pair<TokenId, float>> children;
      for (std::uint32_t n = 0; n < limits.width; ++n) {
        children.emplace_back(static_cast<TokenId>(n), -0.5108256f + -0.9162907f * static_cast<float>(n));
      }
      return children;
    };
    const std::vector<Grown> expected = by_the_book(limits, by_place);
    const std::vector<int> parents = parents_of_drawn(tree, limits, seed);
    ASSERT_EQ(parents.size(), expected.size());
    // A path by place, of each node.
    std::vector<Path> places;
    for (std::size_t i = 0; i < parents.size(); ++i) {
      const auto place = std::count(parents.begin(), parents.begin() + static_cast<std::ptrdiff_t>(i), parents[i]);
      places.push_back(parents[i] < 0 ? Path{} : places[static_cast<std::size_t>(parents[i])]);
      places.back().push_back(static_cast<TokenId>(place));
      EXPECT_EQ(places.back(), expected[i].path);
    }
  }
}

TEST(GrowingTree, OfDrawnDraftTokensIsAsLargeAsWasAskedForWhateverTheyAre) {
  GrowingTree tree;
  for (const std::uint32_t max_nodes : {1u, 2u, 7u, 63u, 64u, 65u}) {
    const TreeLimits limits{.width = 4, .max_depth = 6, .max_nodes = max_nodes};
    const std::vector<int> first = parents_of_drawn(tree, limits, 0);
    EXPECT_EQ(first.size(), std::min(max_nodes, 64u));
    for (std::uint32_t seed = 1; seed < 20; ++seed) EXPECT_EQ(parents_of_drawn(tree, limits, seed), first);
    // Another tree in between changes nothing.
    parents_of_drawn(tree, {.width = 2, .max_depth = 2, .max_nodes = 5}, 3);
    grow({.width = 3, .max_depth = 3, .max_nodes = 9}, random_odds(4, 3));
    EXPECT_EQ(parents_of_drawn(tree, limits, 99), first);
  }
  EXPECT_EQ(parents_of_drawn(tree, {.width = 3, .max_depth = 1, .max_nodes = 64}, 1).size(), 3u);
}

}  // namespace
}  // namespace quire::speculate::growing_tree_test
