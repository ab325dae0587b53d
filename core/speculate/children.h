// Selection of the draft tokens that become a node's children.
// Greedy request: the likeliest tokens. Sampling request under `match`: the tokens that the target would sample if its
// logits equalled the head's; the target's noise is a function of seed and position and can be computed in advance.
//   score = logprob / temperature + the target's Gumbel noise of the token at that position; the highest scores win
//   log_likely = score - log of the sum of exp(score), over the draft tokens that the request's filters leave
// If the two models' logits differed by Gumbel noise of scale 1, exp(log_likely) would be the probability that the
// target samples the token (Luce 1959).
// Under `ratio` and `block` (core/sample/accept.h): children are drawn without replacement from the head's likeliest
// tokens that pass the request's filters, with noise independent of the target's. The highest log_likely + noise is the
// first draw, the next highest the second, and so on. If the filters leave fewer tokens than wanted, the likeliest of
// the others follow without being draws: the number of children must not depend on the head's output.
// Shape   draft tokens in descending order as choose() lists them, by the head's own ids.
// Owner   a reusable value.
// Thread  any; one at a time.
// Source  shared noise: Daliri, Musco, Suresh 2024; it only improves the draft, the sampled tokens never depend on it.
//         Sampling without replacement by Gumbel noise: Kool, van Hoof, Welling 2019; for drafts: EAGLE (Li et al.
//         2024), Sequoia (Chen et al. 2024).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "core/base/ids.h"
#include "core/sample/params.h"
#include "core/sample/proposal_distributions.h"

namespace quire::speculate {

struct Child {
  TokenId token = -1;  // the target's id
  float log_likely = 0.0f;
};

// Adds `distribution` as the proposal distribution of the next node.
inline void add_distribution(std::span<const sample::TokenProbability> distribution,
                             sample::ProposalDistributions& distributions) {
  for (const sample::TokenProbability& one : distribution) distributions.add(one.token, one.chance);
  distributions.close();
}

// Parameters of one selection.
struct ChildRequest {
  std::uint32_t num = 1;
  std::uint32_t position = 0;  // of the children's tokens
  std::uint32_t depth = 1;     // of the children: 1 below the last committed token
  bool shared_noise = true;    // used by a request that samples under match
  std::uint32_t drafter = 0;   // index among several drafters of the same sequence: each draws with its own noise
};

class Children {
 public:
  // Number of top candidates to request from a row so that `num` children can be chosen.
  static std::uint32_t num_candidates_to_request(std::uint32_t num, const sample::Params& params, bool shared_noise);

  void clear() { children_.clear(); }
  void add(TokenId token, float logprob) { children_.push_back({token, logprob}); }
  // Replaces the list by a row's top candidates, as the target's ids. A row that is not finite gives none; where draft
  // tokens are drawn it counts as one with tokens 0 .. num - 1 equally likely.
  template <typename TokenOf = std::identity>
  void list(const backend::Choice& row, std::uint32_t num, const sample::Params& params, const TokenOf& token_of = {}) {
    clear();
    if (row.finite) {
      for (const sample::Candidate& draft_token : row.top) add(token_of(draft_token.token), draft_token.logprob);
    } else if (sample::accepts_by_rejection(params)) {
      for (std::uint32_t i = 0; i < num; ++i) add(token_of(static_cast<TokenId>(i)), 0.0f);
    }
  }
  // Children chosen from the tokens added. Where they are drawn there are wanted.num of them (fewer only if fewer were
  // added), and `distributions` gets an entry for each.
  std::span<const Child> chosen(const ChildRequest& wanted, const sample::Params& params,
                                sample::ProposalDistributions& distributions);

  // The first `num`, unchanged.
  std::span<const Child> likeliest(std::uint32_t num);
  std::span<const Child> drawn(std::uint32_t num, const sample::Params& params, std::uint32_t position);
  std::span<const Child> proposed(const ChildRequest& wanted, const sample::Params& params,
                                  sample::ProposalDistributions& distributions);

 private:
  void scale_and_filter(const sample::Params& params);
  std::size_t num_kept(const sample::Params& params) const;
  bool draw_next(float highest, sample::ProposalDistributions& distributions);

  std::vector<Child> children_;
  std::vector<float> scores_;    // proposed(): log_likely + noise of the tokens not yet drawn
  std::vector<double> weights_;  // proposed(): exp(log_likely) likewise, 0 of drawn ones
  std::vector<Child> picked_;
};

}  // namespace quire::speculate
