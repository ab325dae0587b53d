// What each node of a draft was drawn from, where it was drawn: its law, as the tokens that it could have been, with their
// chances. A node without one was no draw: it is what its drafter says at that place, and could have been nothing else.
// Shape   node by node, in the tree's order; a law's tokens once each, its chances above 0, their sum 1 but for rounding.
// Owner   the drafter, until its next propose(): trees borrow it. To be used again and again; it allocates for the most yet.
// Thread  one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"

namespace quire::sample {

struct Likelihood {
  TokenId token = -1;
  float chance = 0.0f;
};

class ProposalLaws {
 public:
  void clear() {
    each_.clear();
    ends_.clear();
  }
  // Of the next node: add() its tokens, then close().
  void add(TokenId token, float chance) { each_.push_back({token, chance}); }
  void close() { ends_.push_back(each_.size()); }

  std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()); }
  std::span<const Likelihood> of(std::uint32_t node) const {
    if (node >= size()) return {};
    const std::size_t first = node == 0 ? 0 : ends_[node - 1];
    return std::span(each_).subspan(first, ends_[node] - first);
  }

 private:
  std::vector<Likelihood> each_;
  std::vector<std::size_t> ends_;
};

}  // namespace quire::sample
