// Which guesses become a node's children. For a greedy request: the likeliest. For one that draws: those that the target would
// draw if its logits were the head's, for its noise is a function of seed and position and can be looked up.
//   score = logprob / temperature + the target's noise of the token at that position;  the highest scores win
//   log_likely = score - log of the sum of exp(score), over the guesses that the request's filters leave
// Were the two models' logits apart by Gumbel noise of scale 1, that would be the chance that the target draws it (Luce 1959).
// Under ratio and block (core/sample/accept.h) neither: a chain's guess is drawn, from what the request's filters leave of the
// head's likeliest tokens, with noise that is not the target's; a tree's guesses are the likeliest.
// Shape   guesses in falling order, as choose() lists them, of the head's own ids.
// Owner   a value, to be used again and again.
// Thread  any; one at a time.
// Source  coupled draws: Daliri, Musco, Suresh 2024. Only a better guess: what is drawn never depends on it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/sample/params.h"
#include "core/sample/proposal_laws.h"

namespace quire::speculate {

struct Child {
  TokenId token = -1;  // the target's id
  float log_likely = 0.0f;
};

// As many likeliest tokens of the head as a guess is drawn from, under ratio and block.
inline constexpr std::uint32_t kProposalGuesses = sample::kMaxTop;

// Whether such a node's guess is drawn: `width` children would it have at most.
inline bool draws_guesses(const sample::Params& params, std::uint32_t width) {
  return width == 1 && sample::accepts_by_law(params);
}

class Children {
 public:
  // As many guesses as are looked at where `num` children are wanted.
  static std::uint32_t num_guesses(std::uint32_t num, bool with_noise);

  void clear() { children_.clear(); }
  void add(TokenId token, float logprob) { children_.push_back({token, logprob}); }
  // The first `num` as they are.
  std::span<const Child> likeliest(std::uint32_t num);
  // `position`: of the children.
  std::span<const Child> drawn(std::uint32_t num, const sample::Params& params, std::uint32_t position);
  // One, `depth` tokens behind the last one said; the law that it was drawn from goes to `laws`. None where there are no guesses.
  std::span<const Child> proposed(const sample::Params& params, std::uint32_t position, std::uint32_t depth,
                                  sample::ProposalLaws& laws);

 private:
  void scale_and_filter(const sample::Params& params);
  void filter(const sample::Params& params);

  std::vector<Child> children_;
};

}  // namespace quire::speculate
