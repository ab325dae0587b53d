#include "core/speculate/lookup/jacobi_window.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::speculate {

using sample::TokenTree;

void JacobiWindow::seed(std::span<const TokenId> text, std::uint32_t columns, std::uint32_t ngram_size) {
  CHECK(!text.empty());
  CHECK_GE(ngram_size, 2u);
  height_ = ngram_size - 1;
  tokens_.resize(std::size_t{columns} * height_);
  ngram_.resize(ngram_size);
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const std::size_t begin = i / height_ * text.size() / columns;
    tokens_[i] = text[(begin + i % height_) % text.size()];
  }
}

void JacobiWindow::add_to(TokenTree& tree, std::uint32_t max_nodes, std::uint32_t max_depth) const {
  int above = TokenTree::kRoot;
  for (std::uint32_t i = 0; i < num_columns() && i + height_ - 1 <= max_depth; ++i) {
    const std::uint32_t before = tree.size();
    if (add_column(i, max_nodes, above, tree)) continue;
    tree.shrink_to(before);
    return;
  }
}

bool JacobiWindow::add_column(std::uint32_t column, std::uint32_t max_nodes, int& above, TokenTree& tree) const {
  const std::span<const TokenId> tokens = this->column(column);
  int at = above;
  for (std::uint32_t row = column == 0 ? 1 : 0; row < height_; ++row) {
    const int there = tree.child(at, tokens[row]);
    at = there >= 0 ? there : tree.add(tokens[row], at);
    if (at < 0 || tree.size() > max_nodes) return false;
    if (row == 0) above = at;
  }
  if (at != TokenTree::kRoot)
    tree.make_lookahead_node(static_cast<std::uint32_t>(at), static_cast<std::uint8_t>(column));
  return true;
}

std::span<const TokenId> JacobiWindow::advance(std::uint32_t column, TokenId root, TokenId said) {
  CHECK_LT(column, num_columns());
  const auto begin = tokens_.begin() + static_cast<std::ptrdiff_t>(std::size_t{column} * height_);
  const auto end = begin + height_;
  std::copy(begin, end, ngram_.begin());
  ngram_.back() = said;
  if (column == 0) ngram_.front() = root;
  std::copy(ngram_.begin() + 1, ngram_.end(), begin);
  return ngram_;
}

void JacobiWindow::pass(std::uint64_t columns) {
  const auto passed = static_cast<std::uint32_t>(std::min<std::uint64_t>(columns, num_columns()));
  std::rotate(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(std::size_t{passed} * height_),
              tokens_.end());
}

}  // namespace quire::speculate
