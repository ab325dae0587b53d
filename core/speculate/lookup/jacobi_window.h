// Guesses that a sequence's own steps refine, side by side: W columns of N - 1 tokens each. In a draft they are a comb:
// the columns' first tokens are a chain, and each has the rest of its column below it.
//   root ── 01 ── 02             its column, its place in it; N = 4, and 00 is the root, the last token said
//     └──── 10 ── 11 ── 12       A row sees its own column and the first tokens of those before: lookahead's mask.
//            └─── 20 ── 21 ── 22
// The last row of a column is a lookahead node. What it says ends an n-gram, a good guess for wherever the text comes
// to its first token; the column drops its first token and takes that one: one more Jacobi iteration. Nodes of it that
// come true are taken as any others.
// Shape   W (N - 1) - 1 nodes, the deepest W + N - 3 below the root; lookahead node i is column i. With N = 2 the first
//         column has no node.
// Owner   a drafter, one for each sequence. Empty until it is seeded. Nothing but the first seed() allocates.
// Thread  one at a time.
// Fails   nothing: what has no room, from the last column on, is left out, and a column that nothing is heard of stays
//         as it was.
// Source  Lookahead decoding (Fu et al. 2024), 3.1. Theirs runs the columns on by one token however many are said; here
//         columns that the text has passed go to the other end, which is ours: so the others stand where their tokens
//         were meant for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sample/token_tree.h"

namespace quire::speculate {

class JacobiWindow {
 public:
  // Nodes that so many columns want.
  static std::uint32_t num_nodes(std::uint32_t columns, std::uint32_t ngram_size) {
    return columns == 0 ? 0 : columns * (ngram_size - 1) - 1;
  }

  bool empty() const { return tokens_.empty(); }
  // Columns are pieces of the text, which is not empty, from all over it.
  void seed(std::span<const TokenId> text, std::uint32_t columns, std::uint32_t ngram_size);
  // Hangs into the tree, which may have nodes already, as many columns as leave it within both limits. Paths that are
  // there are shared.
  void add_to(sample::TokenTree& tree, std::uint32_t max_nodes, std::uint32_t max_depth) const;
  // The n-gram that a column ends with what its lookahead node said, below `root`; the column goes on. Valid until the
  // next call.
  std::span<const TokenId> advance(std::uint32_t column, TokenId root, TokenId said);
  // The text has passed so many columns, besides the one by which all advance.
  void pass(std::uint64_t columns);

  std::uint32_t num_columns() const { return empty() ? 0 : static_cast<std::uint32_t>(tokens_.size()) / height_; }
  std::span<const TokenId> column(std::uint32_t i) const {
    return std::span(tokens_).subspan(std::size_t{i} * height_, height_);
  }

 private:
  // The column's nodes, its first token's below `above`, which becomes that node. False: there is no room.
  bool add_column(std::uint32_t column, std::uint32_t max_nodes, int& above, sample::TokenTree& tree) const;

  std::uint32_t height_ = 0;     // N - 1
  std::vector<TokenId> tokens_;  // [W, height_]
  std::vector<TokenId> ngram_;   // [N]
};

}  // namespace quire::speculate
