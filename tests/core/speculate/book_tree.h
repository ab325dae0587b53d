// Test support: the dynamic tree as its paper tells it, every node kept until the end, for what grows it faster.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/sample/token_tree.h"
#include "core/speculate/growing_tree.h"

namespace quire::speculate::testing {

using Path = std::vector<TokenId>;
using RowDistribution =
    std::function<std::vector<std::pair<TokenId, float>>(const Path&)>;  // the width likeliest below a path, in order

struct Grown {
  Path path;
  float score;
  friend bool operator==(const Grown&, const Grown&) = default;
};

// Every step as the paper has it, all nodes kept until the end.
inline std::vector<Grown> by_the_book(const TreeLimits& limits, const RowDistribution& odds) {
  std::vector<Grown> all;
  std::vector<Grown> frontier = {{{}, 0.0f}};
  for (std::uint32_t depth = 1; depth <= limits.max_depth; ++depth) {
    std::vector<Grown> fresh;
    for (const Grown& node : frontier) {
      for (const auto& [token, log_likely] : odds(node.path)) {
        Path path = node.path;
        path.push_back(token);
        fresh.push_back({std::move(path), node.score + log_likely});
      }
    }
    all.insert(all.end(), fresh.begin(), fresh.end());
    std::vector<std::size_t> order(fresh.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return fresh[a].score > fresh[b].score; });
    order.resize(std::min<std::size_t>(order.size(), limits.width));
    std::ranges::sort(order);
    frontier.clear();
    for (const std::size_t i : order) frontier.push_back(fresh[i]);
  }
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return all[a].score > all[b].score; });
  order.resize(std::min<std::size_t>(order.size(), limits.max_nodes));
  std::ranges::sort(order);
  std::vector<Grown> kept;
  for (const std::size_t i : order) kept.push_back(all[i]);
  return kept;
}

// likely() as score.
inline std::vector<Grown> nodes_of(const sample::TokenTree& tree) {
  std::vector<Grown> nodes;
  for (std::uint32_t i = 0; i < tree.size(); ++i) {
    Path path;
    for (int at = static_cast<int>(i); at != sample::TokenTree::kRoot;
         at = tree.parent(static_cast<std::uint32_t>(at))) {
      path.push_back(tree.token(static_cast<std::uint32_t>(at)));
    }
    std::ranges::reverse(path);
    nodes.push_back({path, tree.likely(i)});
  }
  return nodes;
}

}  // namespace quire::speculate::testing
