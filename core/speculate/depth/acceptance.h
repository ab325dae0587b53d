// Acceptance statistics by rank in the draft, of one sequence or of all; old drafts count less.
// Shape   ranks 0..63. A rank's probability is that its node lies on the accepted path; in a chain: it and all before
//         it.
// Owner   DepthControl.
// Thread  engine.
// Source  ours: exponentially decaying counts; a rank's prior is the probability of the rank before it times the
//         average ratio between neighbouring ranks.
#pragma once

#include <array>
#include <cstdint>

#include "core/sample/token_tree.h"

namespace quire::speculate {

inline constexpr std::uint32_t kMaxRanks = sample::TokenTree::kMaxNodes;

struct Chances {
  std::array<double, kMaxRanks> offered{};  // probability that the drafter returns this node if asked for so many
  std::array<double, kMaxRanks> taken{};    // probability that the node is accepted if returned
  // Factor by which `taken` falls from rank to rank; of a chain: probability that one more draft token is right.
  double ratio = 0;
};

class Acceptance {
 public:
  // `keep`: factor that the past keeps with each new draft.
  explicit Acceptance(double keep) : keep_(keep) {}

  // The drafter was asked for `asked` nodes and returned `offered`.
  void note_offer(std::uint32_t asked, std::uint32_t offered);
  // A draft's first `kept` nodes were verified; bit i of `taken`: node i was accepted. `keep` replaces keep_ this once.
  void note_verification(std::uint32_t kept, std::uint64_t taken, double keep);
  void note_verification(std::uint32_t kept, std::uint64_t taken) { note_verification(kept, taken, keep_); }
  // A node was cut before verification; it counts as accepted with probability `chance`.
  void note_cut(std::uint32_t rank, double chance);

  // Probabilities of the first `count` ranks. `others`: the prior for ranks not seen here; null: a fixed prior.
  Chances chances(const Chances* others, std::uint32_t count) const;
  double ratio(const Chances* others) const;

 private:
  struct Rank {
    float asks = 0;
    float offers = 0;
    float tries = 0;
    float hits = 0;
  };
  double keep_;
  std::array<Rank, kMaxRanks> ranks_{};
  std::uint32_t used_ = 0;  // ranks from here on have no counts
  double trials_ = 0;
  double successes_ = 0;
};

}  // namespace quire::speculate
