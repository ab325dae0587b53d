// What a drafting model's row says comes next: the token that its own choice names, and where a tree branches the ones behind
// (children.h). Drawn as the target will draw, noise and all: where the two models agree, they agree at every temperature.
// Shape   as many as are wanted or fewer, the best first.
// Thread  one at a time; it allocates for the most guesses yet.
// Source  Daliri, Musco, Suresh 2024 (shared noise). The chance of a lone draw is ours, for budgets alone.
#pragma once

#include <cstdint>
#include <span>

#include "core/backend/batch.h"
#include "core/sample/params.h"
#include "core/sample/proposal_laws.h"
#include "core/speculate/children.h"

namespace quire::speculate {

inline constexpr std::uint32_t kMaxDraftWidth = 16;

// How a drafting row is asked: as the request draws, or greedily; with what draft_children() wants to know of it. Under ratio and
// block greedily: whatever looks at the target's noise is no guess there.
sample::Params draft_params(const sample::Params& request, std::uint32_t width, bool shared_noise);

// Of a row's answer to `asked`, made by draft_params(). `position`: of the token that comes next. None where the row is not finite.
std::span<const Child> draft_children(const backend::Choice& choice, const sample::Params& asked,
                                      std::uint32_t position, std::uint32_t width, Children& room);

// Where guesses are drawn (Children::proposed()): how a drafting row is asked for what they are drawn from, and these.
sample::Params proposal_params();
std::span<const Child> propose_children(const backend::Choice& choice, const sample::Params& request,
                                        const Wanted& wanted, Children& room, sample::ProposalLaws& laws);

}  // namespace quire::speculate
