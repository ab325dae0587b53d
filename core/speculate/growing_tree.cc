#include "core/speculate/growing_tree.h"

#include <algorithm>
#include <numeric>

#include "core/base/check.h"
#include "core/sample/math.h"

namespace quire::speculate {

void GrowingTree::begin(const TreeLimits& limits, bool drawn) {
  if (drawn && shape_limits_ != limits) find_shape(limits);
  limits_ = limits;
  limits_.max_nodes = std::min(limits.max_nodes, sample::TokenTree::kMaxNodes);
  drawn_ = drawn;
  nodes_.clear();
  frontier_.clear();
  best_.clear();
  first_new_ = 0;
  depth_ = 0;
}

void GrowingTree::reserve(const TreeLimits& largest) {
  const std::size_t level = std::size_t{largest.width} * largest.width;
  const std::size_t candidates = largest.width + level * (largest.max_depth - 1);
  nodes_.reserve(candidates);
  node_of_.reserve(candidates);
  frontier_.reserve(std::max<std::size_t>(level, largest.width));
  best_.reserve(sample::TokenTree::kMaxNodes + level);
  shape_.reserve(sample::TokenTree::kMaxNodes + 1);
}

void GrowingTree::find_shape(const TreeLimits& limits) {
  constexpr float kFirst = -0.5108256f;  // log 0.6
  constexpr float kNext = -0.9162907f;   // log 0.4
  begin(limits);
  const auto add_children = [&](int parent) {
    for (std::uint32_t n = 0; n < limits.width; ++n) add(parent, 0, kFirst + kNext * static_cast<float>(n));
  };
  add_children(kRoot);
  for (auto grow = next_frontier(); !grow.empty(); grow = next_frontier()) std::ranges::for_each(grow, add_children);
  sample::TokenTree tree;
  write(tree);
  shape_.assign(tree.size() + 1, 0);
  for (std::uint32_t i = 0; i < tree.size(); ++i) ++shape_[static_cast<std::size_t>(tree.parent(i) + 1)];
  shape_limits_ = limits;
}

void GrowingTree::add(int parent, TokenId token, float log_likely) {
  const float above = parent == kRoot ? 0.0f : nodes_[static_cast<std::size_t>(parent)].score;
  // The clamp keeps a child's score at or below its parent's in spite of rounding.
  nodes_.push_back({token, parent, above + std::min(log_likely, 0.0f)});
}

std::span<const int> GrowingTree::next_frontier() {
  ++depth_;
  frontier_.resize(nodes_.size() - first_new_);
  std::iota(frontier_.begin(), frontier_.end(), static_cast<int>(first_new_));
  best_.insert(best_.end(), frontier_.begin(), frontier_.end());
  if (drawn_) {
    first_new_ = nodes_.size();
    std::erase_if(frontier_, [&](int i) { return num_children(i) == 0; });
    return frontier_;
  }
  keep_likeliest(best_, limits_.max_nodes);
  first_new_ = nodes_.size();
  if (depth_ >= limits_.max_depth) frontier_.clear();
  keep_likeliest(frontier_, limits_.width);
  // Descendants of a node that is already out cannot get in.
  std::erase_if(frontier_, [&](int i) { return !std::ranges::binary_search(best_, i); });
  return frontier_;
}

void GrowingTree::write(sample::TokenTree& tree) {
  CHECK(tree.empty());
  if (drawn_) CHECK_EQ(best_.size() + 1, shape_.size());
  node_of_.assign(nodes_.size(), sample::TokenTree::kRoot);
  for (const int i : best_) {
    const Node& node = nodes_[static_cast<std::size_t>(i)];
    const int parent =
        node.parent == kRoot ? sample::TokenTree::kRoot : node_of_[static_cast<std::size_t>(node.parent)];
    node_of_[static_cast<std::size_t>(i)] = tree.add(node.token, parent, sample::exp_f32(node.score));
  }
}

bool GrowingTree::before(int a, int b) const {
  const float first = nodes_[static_cast<std::size_t>(a)].score;
  const float second = nodes_[static_cast<std::size_t>(b)].score;
  return first != second ? first > second : a < b;
}

void GrowingTree::keep_likeliest(std::vector<int>& among, std::size_t num) const {
  if (among.size() > num) {
    std::nth_element(among.begin(), among.begin() + static_cast<std::ptrdiff_t>(num), among.end(),
                     [this](int a, int b) { return before(a, b); });
    among.resize(num);
  }
  std::ranges::sort(among);
}

}  // namespace quire::speculate
