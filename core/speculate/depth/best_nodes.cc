#include "core/speculate/depth/best_nodes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "core/base/check.h"

namespace quire::speculate {

void put_best_first(sample::TokenTree& tree, std::span<double> gains) {
  using sample::TokenTree;
  const std::uint32_t size = tree.size();
  CHECK_EQ(gains.size(), size);
  for (std::uint32_t i = 0; i < size; ++i) {
    if (tree.parent(i) != TokenTree::kRoot) {
      gains[i] = std::min(gains[i], gains[static_cast<std::size_t>(tree.parent(i))]);
    }
  }
  if (std::is_sorted(gains.begin(), gains.end(), std::greater<>())) return;

  std::array<std::uint32_t, TokenTree::kMaxNodes> order;
  std::iota(order.begin(), order.begin() + size, 0u);
  // Not std::stable_sort: it allocates. A parent has the lower index, so an equal child stays after it.
  std::sort(order.begin(), order.begin() + size,
            [&gains](std::uint32_t a, std::uint32_t b) { return gains[a] != gains[b] ? gains[a] > gains[b] : a < b; });
  const TokenTree old = tree;
  std::array<int, TokenTree::kMaxNodes> place;
  std::array<double, TokenTree::kMaxNodes> sorted;
  tree.clear();
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint32_t from = order[i];
    const int parent = old.parent(from);
    place[from] =
        tree.add(old.token(from), parent == TokenTree::kRoot ? parent : place[static_cast<std::size_t>(parent)],
                 old.likely(from));
    if (old.is_lookahead_node(from)) tree.make_lookahead_node(i, old.lookahead_node(from));
    sorted[i] = gains[from];
  }
  std::copy(sorted.begin(), sorted.begin() + size, gains.begin());
}

}  // namespace quire::speculate
