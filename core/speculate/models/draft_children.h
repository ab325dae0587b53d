// Children of a node from a drafting model's row: the token that the row samples and, in a tree, the next best
// candidates (children.h). With shared noise the row is sampled with the target's noise, so two models with equal
// logits sample the same token at every temperature.
// Shape   at most as many as wanted, best first.
// Thread  one at a time; allocates for the most children so far.
// Source  shared noise: Daliri, Musco, Suresh 2024. The probability of a single sampled child is ours; only budgets use
//         it.
#pragma once

#include <cstdint>
#include <span>

#include "core/backend/batch.h"
#include "core/sample/params.h"
#include "core/sample/proposal_distributions.h"
#include "core/speculate/children.h"

namespace quire::speculate {

inline constexpr std::uint32_t kMaxDraftWidth = 16;

// Sampling parameters of a drafting row for draft_children(): the request's, or greedy without shared noise and under
// ratio and block, where a draft must not depend on the target's noise.
sample::Params draft_params(const sample::Params& request, std::uint32_t width, bool shared_noise);

// Children from the result of a row that ran with `asked`, made by draft_params(). `position`: of the children. Empty
// if the row is not finite.
std::span<const Child> draft_children(const backend::Choice& choice, const sample::Params& asked,
                                      std::uint32_t position, std::uint32_t width, Children& room);

// The same where draft tokens are drawn (Children::proposed()): parameters of the row, and the children drawn from it.
sample::Params proposal_params();
std::span<const Child> propose_children(const backend::Choice& choice, const sample::Params& request,
                                        const ChildRequest& wanted, Children& room,
                                        sample::ProposalDistributions& distributions);

}  // namespace quire::speculate
