// How often guesses are taken, by their rank in the draft: of one sequence, or of all. What is old counts less.
// Shape   ranks 0..63; a rank's chance is that its node lies on the path taken: in a chain, it and all before it.
// Owner   DepthControl.
// Thread  engine.
// Source  ours: counts that fade; a rank's prior is the rank before it times the ratio by which chances fall on average.
#pragma once

#include <array>
#include <cstdint>

#include "core/sample/token_tree.h"

namespace quire::speculate {

inline constexpr std::uint32_t kMaxRanks = sample::TokenTree::kMaxNodes;

struct Chances {
  std::array<double, kMaxRanks> offered{};  // that the drafter gives this node if asked for so many
  std::array<double, kMaxRanks> taken{};    // that it is taken if given
  double ratio = 0;  // by which `taken` falls from rank to rank; of a chain, the chance that one more guess is right
};

class Acceptance {
 public:
  // `keep`: how much of the past remains after one more draft.
  explicit Acceptance(double keep) : keep_(keep) {}

  // Of `asked` nodes the drafter gave `offered`.
  void note_offer(std::uint32_t asked, std::uint32_t offered);
  // A draft was verified, its first `kept` nodes; bit i of `taken`: node i was on the path. `keep`: for this once.
  void note_walk(std::uint32_t kept, std::uint64_t taken, double keep);
  void note_walk(std::uint32_t kept, std::uint64_t taken) { note_walk(kept, taken, keep_); }
  // A node was cut that would have been taken with this chance.
  void note_cut(std::uint32_t rank, double chance);

  // Of the first `count` ranks. `others`: what to believe of what was not seen here, or none.
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
