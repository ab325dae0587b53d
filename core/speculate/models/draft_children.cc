#include "core/speculate/models/draft_children.h"

#include <algorithm>

namespace quire::speculate {
namespace {

// With shared noise a token's low probability says little: similar models sample the same rare token.
constexpr float kLogOfAgreeing = -0.5f;

bool greedy(const sample::Params& params) { return params.temperature < sample::kGreedyTemperature; }

}  // namespace

sample::Params draft_params(const sample::Params& request, std::uint32_t width, bool shared_noise) {
  sample::Params params = request;
  if (!shared_noise || sample::accepts_by_rejection(request)) params.temperature = 0.0f;
  params.logprob = true;
  params.accept = sample::Accept::kMatch;
  params.num_top = width == 1 ? 0 : Children::num_candidates_to_request(width, params, shared_noise);
  return params;
}

std::span<const Child> draft_children(const backend::Choice& choice, const sample::Params& asked,
                                      std::uint32_t position, std::uint32_t width, Children& room) {
  room.clear();
  if (choice.token < 0 || !choice.finite) return {};
  if (width == 1) {
    room.add(choice.token, greedy(asked) ? choice.logprob : std::max(choice.logprob, kLogOfAgreeing));
    return room.likeliest(1);
  }
  for (const sample::Candidate& candidate : choice.top) room.add(candidate.token, candidate.logprob);
  return greedy(asked) ? room.likeliest(width) : room.drawn(width, asked, position);
}

sample::Params proposal_params() { return {.temperature = 0.0f, .num_top = sample::kMaxTop}; }

std::span<const Child> propose_children(const backend::Choice& choice, const sample::Params& request,
                                        const ChildRequest& wanted, Children& room,
                                        sample::ProposalDistributions& distributions) {
  room.list(choice, wanted.num, request);
  return room.proposed(wanted, request, distributions);
}

}  // namespace quire::speculate
