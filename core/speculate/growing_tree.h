// A draft tree that grows level by level and is then cut to its likeliest nodes: of each level's nodes the `width` likeliest get
// `width` children each, and of all nodes ever seen the `max_nodes` likeliest stay. How likely a node is: the product of what
// the head gives the tokens of its path, so that no node passes its parent; of equals the earlier is the likelier.
// Shape   candidates in the order they were added: a parent before its children, siblings together.
// Owner   a value, to be used again and again; it allocates for the largest tree yet.
// Thread  any; one at a time.
// Source  EAGLE-2 (Li et al. 2024), expansion and reranking. That nodes which can no longer stay are not grown is ours; it
//         changes nothing.
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
};

class GrowingTree {
 public:
  static constexpr int kRoot = -1;

  void begin(const TreeLimits& limits);
  const TreeLimits& limits() const { return limits_; }

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

  TreeLimits limits_;
  std::vector<Node> nodes_;
  std::vector<int> frontier_;
  std::vector<int> best_;     // the max_nodes likeliest so far
  std::vector<int> node_of_;  // of candidates, in the tree written
  std::size_t first_new_ = 0;
  std::uint32_t depth_ = 0;
};

}  // namespace quire::speculate
