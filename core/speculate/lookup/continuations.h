// Draft built from the continuations of several occurrences of the text's end: a trie of those continuations, grown one
// node at a time, always by the most probable one. A node's probability is its parent's times the fraction of the
// parent's occurrences that go on with its token.
// Shape   a tree with at most `width` children per node: the most frequent tokens; on a tie, the token of the earliest
//         occurrence. width 1 is a chain.
// Owner   a drafter; reusable scratch that keeps its memory between calls.
// Thread  engine. O(nodes · n log n) for n occurrences.
// Fails   never.
// Source  SuffixDecoding (Oliaro et al. 2024), section 4: frequencies, the frontier, the sum of probabilities as score;
//         REST (He et al. 2023): tries cut by frequency.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/sample/token_tree.h"

namespace quire::speculate {

// Numbered occurrences and the tokens that follow each.
class Followers {
 public:
  static constexpr TokenId kNothing = -1;
  virtual ~Followers() = default;
  // Token `ahead` positions after the occurrence's end, 0 the next one; kNothing if there is none. Called with ahead >
  // 0 only if all tokens before exist.
  virtual TokenId after(std::uint32_t occurrence, std::uint32_t ahead) const = 0;
};

struct GrowLimits {
  std::uint32_t max_nodes = 0;
  std::uint32_t max_depth = 0;
  float min_likely = 0.0f;  // a less probable path is left out
  std::uint32_t width = 1;  // most children of a node; 1: a chain
};

class Continuations {
 public:
  // Fills the empty tree and returns the sum of its nodes' probabilities: the expected number of accepted nodes.
  float grow(const Followers& followers, std::uint32_t num_occurrences, const GrowLimits& limits,
             sample::TokenTree& tree);

 private:
  struct Member {
    TokenId token;
    std::uint32_t occurrence;
  };
  // A candidate node: members_[first, first + count) go on with its token.
  struct Branch {
    float likely;
    std::uint32_t order;  // in which it was found
    int parent;
    std::uint32_t depth;
    std::uint32_t first;
    std::uint32_t count;
  };

  static bool later(const Branch& a, const Branch& b) {
    return a.likely != b.likely ? a.likely < b.likely : a.order > b.order;
  }
  // Puts the continuations of `of`, which is node `node` of the tree, on the frontier.
  void branch_out(const Followers& followers, const Branch& of, int node, const GrowLimits& limits);

  std::vector<Member> members_;
  std::vector<Branch> siblings_;
  std::vector<Branch> frontier_;  // a heap by later()
  std::uint32_t num_found_ = 0;
};

// Expected number of accepted nodes of a draft, if its probabilities are right.
inline float expected_taken(const sample::TokenTree& tree) {
  float sum = 0.0f;
  for (std::uint32_t i = 0; i < tree.size(); ++i) sum += tree.likely(i);
  return sum;
}

}  // namespace quire::speculate
