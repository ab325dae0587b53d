// A draft tree that grows level by level and is then cut to its likeliest nodes: of each level's nodes the `width` likeliest get
// `width` children each, and of all nodes ever seen the `max_nodes` likeliest stay. How likely a node is: the product of what
// the head gives the tokens of its path, so that no node passes its parent; of equals the earlier is the likelier.
// Where guesses are drawn (children.h) it has one shape instead, whatever they turn out to be: that of a tree in which each node's
// n-th child is the one that is said with a chance of 0.6 · 0.4^n. So a draft's size is what was asked for, nothing that was drawn
// is left out, and of siblings those stay that were drawn first.
// Shape   candidates in the order they were added: a parent before its children, siblings together.
// Owner   a value, to be used again and again; it allocates for the largest tree yet, or for the largest that reserve() was told of.
// Thread  any; one at a time.
// Source  EAGLE-2 (Li et al. 2024), expansion and reranking. That nodes which can no longer stay are not grown is ours; it
//         changes nothing. Shapes by what a sibling's place is worth: Sequoia (Chen et al. 2024); the two numbers are ours.
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
  // `drawn`: every node that grows is given num_children() of them, no fewer.
  void begin(const TreeLimits& limits, bool drawn = false);

  std::uint32_t num_children(int parent) const {
    return drawn_ ? shape_[static_cast<std::size_t>(parent + 1)] : limits_.width;
  }
  // Another candidate below `parent`: the root, or one of frontier().
  void add(int parent, TokenId token, float log_likely);
  // The candidates that get children next, ascending; chosen among those added since the last call. Empty: it is grown.
  std::span<const int> next_frontier();

  int parent(int candidate) const { return nodes_[static_cast<std::size_t>(candidate)].parent; }
  TokenId token(int candidate) const { return nodes_[static_cast<std::size_t>(candidate)].token; }
  std::uint32_t depth() const { return depth_; }  // of frontier()

  // Writes what stays; the tree is empty.
  void write(sample::TokenTree& tree);

 private:
  struct Node {
    TokenId token;
    int parent;
    float score;  // log of the path's product
  };
  bool before(int a, int b) const;
  // The `num` likeliest of `among`, ascending by index.
  void keep_likeliest(std::vector<int>& among, std::size_t num) const;

  void find_shape(const TreeLimits& limits);

  TreeLimits limits_;
  bool drawn_ = false;
  std::vector<std::uint32_t> shape_;  // children of the root, then of each node
  TreeLimits shape_limits_{0, 0, 0};  // what that is for
  std::vector<Node> nodes_;
  std::vector<int> frontier_;
  std::vector<int> best_;     // the max_nodes likeliest so far
  std::vector<int> node_of_;  // of candidates, in the tree written
  std::size_t first_new_ = 0;
  std::uint32_t depth_ = 0;
};

}  // namespace quire::speculate
