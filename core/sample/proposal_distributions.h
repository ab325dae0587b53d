// The distributions that the draft tokens of one draft were drawn from: for each node the possible tokens and their
// probabilities. A node without a distribution was not drawn at random: its drafter always proposes that token there.
// Shape   node by node, in the tree's order; a distribution lists each token once, with a probability above 0; they sum
//         to 1 but for rounding.
// Owner   the drafter; trees borrow it until the drafter's next propose(). Reused: it allocates only to grow.
// Thread  one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"

namespace quire::sample {

struct TokenProbability {
  TokenId token = -1;
  float chance = 0.0f;
};

class ProposalDistributions {
 public:
  void clear() {
    each_.clear();
    ends_.clear();
  }
  // Builds the distribution of the next node: add() each of its tokens, then close().
  void add(TokenId token, float chance) { each_.push_back({token, chance}); }
  void close() { ends_.push_back(each_.size()); }

  std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()); }
  std::span<const TokenProbability> of(std::uint32_t node) const {
    if (node >= size()) return {};
    const std::size_t first = node == 0 ? 0 : ends_[node - 1];
    return std::span(each_).subspan(first, ends_[node] - first);
  }

 private:
  std::vector<TokenProbability> each_;
  std::vector<std::size_t> ends_;
};

}  // namespace quire::sample
