// Rejection sampling of draft tokens: which draft tokens after a logits row are accepted, and which token is sampled
// if none is. The emitted tokens have the row's own distribution p (that of draw() with the request's rules,
// temperature and filters), whatever was drafted. q is the distribution that a draft token was drawn from; a draft
// token that was not drawn at random has q = 1 at itself.
//   accept_or_resample()  tests the draft tokens one after another: x is accepted if coin · q(x) < p(x); otherwise p
//                  becomes norm(max(p - q, 0)). If none is accepted, the token is sampled from p as it is by then.
//   verify_chain()  P_0 = 1, P_i = min(1, P_(i-1) p(x_i) / q(x_i)). After the first i draft tokens, R_i is the sum over
//                  all tokens of max(P_i p - q, 0) and h_i = R_i / (R_i + 1 - P_i); at the chain's end h_i = P_i. The
//                  longest prefix with coin_i < h_i is accepted; the next token is sampled from
//                  norm(max(P_i p - q, 0)), at the end of the chain from p.
// Noise   three separate streams: draws of draft tokens (ahead(kProposal)), coins, draws from what is left. None of
//         them is the target's stream, which drafters may read. A stream belongs to one position and one depth, so no
//         noise of a step is used again in a later one.
// Shape   accept_or_resample(): the draft tokens below one node, in the tree's order, and their `depth`, 1 below the
//         root. verify_chain(): rows [K + 1], chain [K].
//         A distribution lists each token once; tokens outside the row have probability 0. If siblings were drawn
//         without replacement, each draft token has the distribution that was left when it was drawn.
// Exact   if the presence of a draft token does not depend on its value (a budget, the tree's shape or the text so far
//         may decide it). Not exact if a draft token is left out because of its value, or has a distribution that
//         it was not drawn from.
// Thread  any, with its own scratch; nothing allocates.
// Fails   as draw(): finite = false. A chain is verified up to its first row that is not finite.
// Source  ratio: Leviathan et al. 2023, Chen et al. 2023; several draft tokens in turn: SpecInfer (Miao et al. 2023),
//         Sequoia (Chen et al. 2024); block: Sun et al. 2024 (arXiv:2403.10444). Noise by position and depth, and
//         masses as integers, are ours.
#pragma once

#include <cstdint>
#include <span>

#include "core/sample/edits.h"
#include "core/sample/params.h"
#include "core/sample/proposal_distributions.h"
#include "core/sample/sampler.h"
#include "core/sample/scratch.h"

namespace quire::sample {

struct DraftToken {
  TokenId token = -1;
  std::span<const TokenProbability> distribution{};  // empty: not drawn at random
};

// A logits row, and the buffer for the list of its likeliest tokens.
struct VerifiedRow {
  std::span<const float> logits;
  Highest highest{};
  std::uint32_t position = 0;  // of the token that the row samples
  Edits edits{};
  std::span<Candidate> room{};  // for Drawn::top
};

// Returns a draft token's own token if and only if that draft token was accepted.
SampledToken accept_or_resample(const VerifiedRow& row, std::span<const DraftToken> draft_tokens, std::uint32_t depth,
                                const Params& params, Scratch& scratch);

// drawn[i] is the token of rows[i]: the accepted draft tokens, then one sampled token; token -1 in the rest.
void verify_chain(std::span<const VerifiedRow> rows, std::span<const DraftToken> chain, const Params& params,
                  Scratch& scratch, std::span<SampledToken> drawn);

}  // namespace quire::sample
