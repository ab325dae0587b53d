// Draft tree that grows level by level and is then cut to its likeliest nodes. On each level the `width` likeliest
// nodes get `width` children each; of all candidates the `max_nodes` likeliest stay. A node's likelihood is the product
// of the head's probabilities along its path, so it never exceeds its parent's; on a tie the earlier candidate wins.
// Where draft tokens are drawn (children.h) the tree has a fixed shape instead, whatever the tokens are: the shape that
// results if each node's child n, counted from 0, is accepted with probability 0.6 · 0.4^n. So the draft has exactly
// the requested size, no drawn node is left out, and of siblings the first drawn stay.
// Shape   candidates in the order they were added: a parent before its children, siblings together.
// Owner   a reusable value. Allocates only for a tree larger than any before and than reserve() was given.
// Thread  any; one at a time.
// Source  EAGLE-2 (Li et al. 2024), expansion and reranking; fixed shapes by the acceptance of sibling ranks: Sequoia
//         (Chen et al. 2024). Ours: 0.6 and 0.4; not growing nodes that can no longer stay, which changes no result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/sample/token_tree.h"

namespace quire::speculate {

struct TreeLimits {
  std::uint32_t width = 1;
  std::uint32_t max_depth = 1;
  std::uint32_t max_nodes = 1;
  friend bool operator==(const TreeLimits&, const TreeLimits&) = default;
};

class GrowingTree {
 public:
  static constexpr int kRoot = -1;

  void reserve(const TreeLimits& largest);
  // `drawn`: fixed shape; the caller must add num_children() children to the root and to each node of next_frontier().
  void begin(const TreeLimits& limits, bool drawn = false);

  std::uint32_t num_children(int parent) const {
    return drawn_ ? shape_[static_cast<std::size_t>(parent + 1)] : limits_.width;
  }
  // Adds a candidate below `parent`: the root, or a node of the last next_frontier(). `log_likely`: log probability.
  void add(int parent, TokenId token, float log_likely);
  // The candidates that get children next, ascending, from those added since the last call. Empty: the tree is
  // complete.
  std::span<const int> next_frontier();

  int parent(int candidate) const { return nodes_[static_cast<std::size_t>(candidate)].parent; }
  TokenId token(int candidate) const { return nodes_[static_cast<std::size_t>(candidate)].token; }
  std::uint32_t depth() const { return depth_; }  // of the nodes of the last next_frontier()

  // Writes the nodes that stay into `tree`, which is empty.
  void write(sample::TokenTree& tree);

 private:
  struct Node {
    TokenId token;
    int parent;
    float score;  // sum of the path's log probabilities
  };
  bool before(int a, int b) const;
  // Reduces `among` to its `num` likeliest candidates, ascending by index.
  void keep_likeliest(std::vector<int>& among, std::size_t num) const;

  void find_shape(const TreeLimits& limits);

  TreeLimits limits_;
  bool drawn_ = false;
  std::vector<std::uint32_t> shape_;  // fixed shape: number of children of the root, then of each node
  TreeLimits shape_limits_{0, 0, 0};  // limits that shape_ was computed for
  std::vector<Node> nodes_;
  std::vector<int> frontier_;
  std::vector<int> best_;     // the max_nodes likeliest so far; drawn: all
  std::vector<int> node_of_;  // candidate to node index in the tree written
  std::size_t first_new_ = 0;
  std::uint32_t depth_ = 0;
};

}  // namespace quire::speculate
