#include "core/sample/token_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace quire::sample::token_tree_test {
namespace {

// Whatever is done to a tree, the nodes that it has are lookahead nodes where they were made such since they were
// added.
TEST(TokenTree, KnowsItsLookaheadNodesHoweverItGrowsAndShrinks) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    TokenTree tree;
    std::map<std::uint32_t, std::uint8_t> expected;
    for (int turn = 0; turn < 300; ++turn) {
      const std::uint32_t kind = random() % 20;
      if (kind < 12) {
        tree.add(static_cast<TokenId>(random() % 9), static_cast<int>(random() % (tree.size() + 1)) - 1);
      } else if (kind < 18 && !tree.empty()) {
        const auto node = static_cast<std::uint32_t>(random() % tree.size());
        const auto number = static_cast<std::uint8_t>(random() % 256);
        tree.make_lookahead_node(node, number);
        expected[node] = number;
      } else if (kind == 18) {
        const auto size = static_cast<std::uint32_t>(random() % (TokenTree::kMaxNodes + 2));
        tree.shrink_to(size);
        expected.erase(expected.lower_bound(size), expected.end());
      } else if (turn % 7 == 0) {
        tree.clear();
        expected.clear();
      }
      for (std::uint32_t first = 0; first <= TokenTree::kMaxNodes; ++first) {
        std::uint64_t bits = 0;
        for (const auto& [node, number] : expected) bits |= node < first ? std::uint64_t{1} << node : 0;
        ASSERT_EQ(tree.lookahead_nodes(first), bits) << first;
      }
      for (std::uint32_t i = 0; i < tree.size(); ++i) ASSERT_EQ(tree.is_lookahead_node(i), expected.contains(i));
      for (const auto& [node, number] : expected) ASSERT_EQ(tree.lookahead_node(node), number);
    }
  }
}

}  // namespace
}  // namespace quire::sample::token_tree_test
