#include "core/speculate/lookup/jacobi_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace quire::speculate::jacobi_window_test {
namespace {

using sample::TokenTree;
using ::testing::ElementsAre;

using Tokens = std::vector<TokenId>;

Tokens tokens_of(std::span<const TokenId> tokens) { return {tokens.begin(), tokens.end()}; }

// Node by node of the path to it.
Tokens path_to(const TokenTree& tree, std::uint32_t node) {
  Tokens path;
  for (std::uint32_t i = 0; i <= node; ++i) {
    if ((tree.ancestors(node) >> i & 1) != 0) path.push_back(tree.token(i));
  }
  return path;
}

Tokens counting(std::size_t count) {
  Tokens out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<TokenId>(100 + i);
  return out;
}

// The window as the paper draws it: levels[r][c], and each level sees what is to the left of it in the lowest, and the
// lower ones of its column.
struct Levels {
  std::vector<Tokens> rows;

  Levels(const JacobiWindow& window, std::uint32_t ngram_size) : rows(ngram_size - 1) {
    for (std::uint32_t c = 0; c < window.num_columns(); ++c) {
      for (std::size_t r = 0; r < rows.size(); ++r) rows[r].push_back(window.column(c)[r]);
    }
  }
  Tokens seen_by_last(std::uint32_t c) const {
    Tokens seen(rows[0].begin() + 1, rows[0].begin() + std::max(c + 1, 1u));
    for (std::size_t r = 1; r < rows.size(); ++r) seen.push_back(rows[r][c]);
    return seen;
  }
  // Of a step that said `said` tokens; a column that was not heard of gets -1 and stays.
  void step(const Tokens& results, std::size_t said) {
    for (std::size_t c = 0; c < results.size(); ++c) {
      if (results[c] < 0) continue;
      for (std::size_t r = 0; r + 1 < rows.size(); ++r) rows[r][c] = rows[r + 1][c];
      rows.back()[c] = results[c];
    }
    for (Tokens& row : rows) {
      Tokens shifted;
      for (std::size_t c = 0; c < row.size(); ++c)
        shifted.push_back(row[(c + std::min(said - 1, row.size())) % row.size()]);
      row = shifted;
    }
  }
};

TEST(JacobiWindow, RefinesAndShiftsAsItsLevelsDo) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::uint32_t ngram_size = 2 + seed % 5;
    const std::uint32_t columns = 1 + seed % 7;
    JacobiWindow window;
    window.seed(counting(1 + random() % 40), columns, ngram_size);
    Levels levels(window, ngram_size);
    for (int step = 0; step < 40; ++step) {
      TokenTree tree;
      window.add_to(tree, 64, 64);
      std::vector<bool> lookahead_results(columns);
      for (std::uint32_t i = 0; i < tree.size(); ++i) {
        if (!tree.is_lookahead_node(i)) continue;
        EXPECT_EQ(path_to(tree, i), levels.seen_by_last(tree.lookahead_node(i)));
        lookahead_results[tree.lookahead_node(i)] = true;
      }
      const auto root = static_cast<TokenId>(random() % 50);
      Tokens results(columns, -1);
      for (std::uint32_t c = 0; c < columns; ++c) {
        EXPECT_EQ(lookahead_results[c], c > 0 || ngram_size > 2);
        if (!lookahead_results[c] || random() % 8 == 0) continue;
        results[c] = static_cast<TokenId>(random() % 50);
        Tokens ngram = tokens_of(window.column(c));
        if (c == 0) ngram[0] = root;
        ngram.push_back(results[c]);
        EXPECT_EQ(tokens_of(window.advance(c, root, results[c])), ngram);
      }
      const std::size_t said = 1 + random() % 9;
      levels.step(results, said);
      window.pass(said - 1);
      for (std::uint32_t c = 0; c < columns; ++c) {
        for (std::uint32_t r = 0; r + 1 < ngram_size; ++r) ASSERT_EQ(window.column(c)[r], levels.rows[r][c]);
      }
    }
  }
}

TEST(JacobiWindow, HangsInWholeColumnsFromTheFirstAsFarAsThereIsRoom) {
  for (const std::uint32_t ngram_size : {2u, 3u, 5u}) {
    JacobiWindow window;
    window.seed(counting(200), 6, ngram_size);  // no token twice: nothing is shared
    for (std::uint32_t max_nodes = 0; max_nodes <= 30; ++max_nodes) {
      for (std::uint32_t max_depth = 1; max_depth <= 12; ++max_depth) {
        std::uint32_t columns = 0;
        while (columns < 6 && JacobiWindow::num_nodes(columns + 1, ngram_size) <= max_nodes &&
               columns + ngram_size - 2 <= max_depth) {
          ++columns;
        }
        TokenTree tree;
        window.add_to(tree, max_nodes, max_depth);
        EXPECT_EQ(tree.size(), JacobiWindow::num_nodes(columns, ngram_size)) << max_nodes << ' ' << max_depth;
        for (std::uint32_t i = 0; i < tree.size(); ++i) EXPECT_LE(tree.depth(i), max_depth);
      }
    }
  }
}

TEST(JacobiWindow, SharesPathsThatATreeHasAlready) {
  JacobiWindow window;
  window.seed(Tokens{1, 2, 3, 4, 5, 6}, 2, 4);  // 1 2 3 and 4 5 6
  TokenTree tree;
  for (const TokenId token : {4, 5, 9}) tree.add(token, static_cast<int>(tree.size()) - 1);
  window.add_to(tree, 64, 64);
  EXPECT_EQ(tree.size(), 3u + 2 + 1);
  std::set<Tokens> lookahead_nodes;
  for (std::uint32_t i = 0; i < tree.size(); ++i) {
    if (tree.is_lookahead_node(i)) lookahead_nodes.insert(path_to(tree, i));
  }
  EXPECT_THAT(lookahead_nodes, ElementsAre(Tokens{2, 3}, Tokens{4, 5, 6}));
}

TEST(JacobiWindow, LeavesATreeWithoutRoomAsItWas) {
  JacobiWindow window;
  window.seed(counting(50), 3, 5);
  TokenTree tree;
  for (int i = 0; i < 62; ++i) tree.add(i, i - 1);
  window.add_to(tree, 64, 64);  // the first column wants three
  EXPECT_EQ(tree.size(), 62u);
  EXPECT_EQ(tree.lookahead_nodes(64), 0u);
  tree.shrink_to(61);
  window.add_to(tree, 64, 64);
  EXPECT_EQ(tree.size(), 64u);
}

TEST(JacobiWindow, BeginsWithPiecesOfATextHoweverShort) {
  JacobiWindow window;
  EXPECT_TRUE(window.empty());
  EXPECT_EQ(window.num_columns(), 0u);
  window.seed(Tokens{7}, 3, 4);
  for (std::uint32_t c = 0; c < 3; ++c) EXPECT_THAT(window.column(c), ElementsAre(7, 7, 7));
  window.seed(Tokens{1, 2, 3, 4, 5, 6}, 3, 3);
  EXPECT_THAT(window.column(0), ElementsAre(1, 2));
  EXPECT_THAT(window.column(1), ElementsAre(3, 4));
  EXPECT_THAT(window.column(2), ElementsAre(5, 6));
}

}  // namespace
}  // namespace quire::speculate::jacobi_window_test
