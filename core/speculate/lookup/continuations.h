// What followed some occurrences of a text's end, merged into a draft: a trie of their continuations, grown from its most probable
// end at a time. A node's chance is the part of its parent's occurrences that go on with its token.
// Shape   a tree: of each node the most frequent children, as many as its width; of equally frequent ones the one that the
//         earliest of the occurrences has. A width of 1 is a chain.
// Owner   a drafter; it is scratch, and keeps its memory from call to call.
// Thread  engine. O(nodes · n log n) for n occurrences.
// Fails   nothing.
// Source  SuffixDecoding (Oliaro et al. 2024), 4: frequencies, the frontier, the sum of chances as a score; REST (He et al. 2023)
//         for tries cut by frequency.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/sample/token_tree.h"

namespace quire::speculate {

// The occurrences, by number.
class Followers {
 public:
  static constexpr TokenId kNothing = -1;
  virtual ~Followers() = default;
  // The token so many behind the occurrence's end, 0 the one right there. It is asked for a second one only behind a first.
  virtual TokenId after(std::uint32_t occurrence, std::uint32_t ahead) const = 0;
};

struct GrowLimits {
  std::uint32_t max_nodes = 0;
  std::uint32_t max_depth = 0;
  float min_likely = 0.0f;  // paths less likely than this are left out
  std::uint32_t width = 1;  // children of a node, at most; 1: a chain
};

class Continuations {
 public:
  // Fills the empty tree; gives the sum of its nodes' chances: how many of them are taken, if the chances are right.
  float grow(const Followers& followers, std::uint32_t num_occurrences, const GrowLimits& limits,
             sample::TokenTree& tree);

 private:
  struct Member {
    TokenId token;
    std::uint32_t occurrence;
  };
  // A node that could be next: members_[first, first + count) go on with its token.
  struct Branch {
    float likely;
    std::uint32_t order;  // of finding
    int parent;
    std::uint32_t depth;
    std::uint32_t first;
    std::uint32_t count;
  };

  static bool later(const Branch& a, const Branch& b) {
    return a.likely != b.likely ? a.likely < b.likely : a.order > b.order;
  }
  // Finds what goes on from `of`, which is node `node`, and puts it on the frontier.
  void branch_out(const Followers& followers, const Branch& of, int node, const GrowLimits& limits);

  std::vector<Member> members_;
  std::vector<Branch> siblings_;
  std::vector<Branch> frontier_;  // a heap by later()
  std::uint32_t num_found_ = 0;
};

// Of a whole draft: how many nodes are taken, if their chances are right.
inline float expected_taken(const sample::TokenTree& tree) {
  float sum = 0.0f;
  for (std::uint32_t i = 0; i < tree.size(); ++i) sum += tree.likely(i);
  return sum;
}

}  // namespace quire::speculate
