// Which guesses become a node's children. For a greedy request: the likeliest. For one that draws: those that the target would
// draw if its logits were the head's, for its noise is a function of seed and position and can be looked up.
//   score = logprob / temperature + the target's noise of the token at that position;  the highest scores win
//   log_likely = score - log of the sum of exp(score), over the guesses that the request's filters leave
// Were the two models' logits apart by Gumbel noise of scale 1, that would be the chance that the target draws it (Luce 1959).
// Under ratio and block (core/sample/accept.h) neither: they are drawn, one after another and none twice, from what the request's
// filters leave of the head's likeliest tokens, with noise that is not the target's. The highest log_likely + noise wins, then the
// next of what is left, and so on: that is such a draw. Where the filters leave fewer than are wanted the likeliest others follow,
// which are no draws: how many there are must not depend on what the head says.
// Shape   guesses in falling order, as choose() lists them, of the head's own ids.
// Owner   a value, to be used again and again.
// Thread  any; one at a time.
// Source  coupled draws: Daliri, Musco, Suresh 2024. Only a better guess: what is drawn never depends on it. Draws without putting
//         back by their noise: Kool, van Hoof, Welling 2019; as guesses EAGLE (Li et al. 2024), Sequoia (Chen et al. 2024).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "core/base/ids.h"
#include "core/sample/params.h"
#include "core/sample/proposal_laws.h"

namespace quire::speculate {

struct Child {
  TokenId token = -1;  // the target's id
  float log_likely = 0.0f;
};

// The next node's law is this one.
inline void add_law(std::span<const sample::Likelihood> law, sample::ProposalLaws& laws) {
  for (const sample::Likelihood& one : law) laws.add(one.token, one.chance);
  laws.close();
}

// How a node's children are chosen.
struct Wanted {
  std::uint32_t num = 1;
  std::uint32_t position = 0;  // theirs
  std::uint32_t depth = 1;     // tokens behind the last one said
  bool shared_noise = true;    // of a request that draws under match
  std::uint32_t drafter = 0;   // which of several that guess at the same sequence: each draws with noise of its own
};

class Children {
 public:
  // As many guesses as are looked at where `num` children are wanted.
  static std::uint32_t num_guesses(std::uint32_t num, const sample::Params& params, bool shared_noise);

  void clear() { children_.clear(); }
  void add(TokenId token, float logprob) { children_.push_back({token, logprob}); }
  // What a row lists, alone, as the target's ids. A row that is not finite lists nothing; where guesses are drawn it counts as one
  // that finds the first `num` equally likely.
  template <typename TokenOf = std::identity>
  void list(const backend::Choice& row, std::uint32_t num, const sample::Params& params, const TokenOf& token_of = {}) {
    clear();
    if (row.finite) {
      for (const sample::Candidate& guess : row.top) add(token_of(guess.token), guess.logprob);
    } else if (sample::accepts_by_law(params)) {
      for (std::uint32_t i = 0; i < num; ++i) add(token_of(static_cast<TokenId>(i)), 0.0f);
    }
  }
  // Of those added. Where they are drawn there are as many as are wanted, if as many were added, and `laws` gets a node for each.
  std::span<const Child> chosen(const Wanted& wanted, const sample::Params& params, sample::ProposalLaws& laws);

  // The first `num` as they are.
  std::span<const Child> likeliest(std::uint32_t num);
  std::span<const Child> drawn(std::uint32_t num, const sample::Params& params, std::uint32_t position);
  std::span<const Child> proposed(const Wanted& wanted, const sample::Params& params, sample::ProposalLaws& laws);

 private:
  void scale_and_filter(const sample::Params& params);
  std::size_t num_kept(const sample::Params& params) const;
  bool draw_next(float highest, sample::ProposalLaws& laws);

  std::vector<Child> children_;
  std::vector<float> scores_;    // proposed(): log_likely + noise of what is still to be drawn
  std::vector<double> weights_;  // and its exp(log_likely), 0 of what is drawn
  std::vector<Child> picked_;
};

}  // namespace quire::speculate
