// Jacobi window of lookahead decoding: W columns of N - 1 predicted tokens each, which the target refines in every
// step. In a draft they form a comb: the columns' first tokens are a chain, with the rest of each column below its
// first.
//   root ── 01 ── 02             Numbers: column, index in it; N = 4; 00 is the root, the last committed token.
//     └──── 10 ── 11 ── 12       Mask of the paper: a row attends to its own column and to the first tokens of the
//            └─── 20 ── 21 ── 22 columns before it.
// The last node of a column is a lookahead node. Its result completes an n-gram, which may be drafted wherever the text
// reaches its first token. The column then drops its first token and appends the result: one Jacobi iteration. Window
// nodes that match the sampled tokens are accepted like any other.
// Shape   W (N - 1) - 1 nodes, at most W + N - 3 deep; lookahead node i belongs to column i. With N = 2 the first
//         column has no node.
// Owner   a drafter, one per sequence. Empty until seed(). Only the first seed() allocates.
// Thread  one at a time.
// Fails   never: columns without room are left out, from the last one on; a column without a result stays as it was.
// Source  Lookahead decoding (Fu et al. 2024), 3.1. There all columns advance by one token however many were accepted.
//         Ours: columns that the text has passed move to the end, so the others stay aligned with their positions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sample/token_tree.h"

namespace quire::speculate {

class JacobiWindow {
 public:
  // Number of nodes of `columns` columns.
  static std::uint32_t num_nodes(std::uint32_t columns, std::uint32_t ngram_size) {
    return columns == 0 ? 0 : columns * (ngram_size - 1) - 1;
  }

  bool empty() const { return tokens_.empty(); }
  // Fills the columns with pieces of `text`, evenly spread over it. `text` is not empty.
  void seed(std::span<const TokenId> text, std::uint32_t columns, std::uint32_t ngram_size);
  // Adds to `tree`, which may have nodes already, as many columns as fit within both limits. Common paths are shared.
  void add_to(sample::TokenTree& tree, std::uint32_t max_nodes, std::uint32_t max_depth) const;
  // Appends `said`, the result of the column's lookahead node, and drops the column's first token. Returns the
  // completed n-gram (column 0: beginning with `root`), valid until the next call.
  std::span<const TokenId> advance(std::uint32_t column, TokenId root, TokenId said);
  // Moves the first `columns` columns to the end: the text has passed them.
  void pass(std::uint64_t columns);

  std::uint32_t num_columns() const { return empty() ? 0 : static_cast<std::uint32_t>(tokens_.size()) / height_; }
  std::span<const TokenId> column(std::uint32_t i) const {
    return std::span(tokens_).subspan(std::size_t{i} * height_, height_);
  }

 private:
  // Adds the column's nodes; its first token's parent is `above`, which becomes that token's node. False: no room.
  bool add_column(std::uint32_t column, std::uint32_t max_nodes, int& above, sample::TokenTree& tree) const;

  std::uint32_t height_ = 0;     // N - 1
  std::vector<TokenId> tokens_;  // [W, height_]
  std::vector<TokenId> ngram_;   // [N]
};

}  // namespace quire::speculate
