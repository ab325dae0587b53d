#include "core/sample/logprob.h"

#include <algorithm>

namespace quire::sample {
namespace {

constexpr std::size_t kLookAhead = 16;

// While a list is being made, Candidate::logprob holds the logit.
bool likelier(const Candidate& a, const Candidate& b) {
  return a.logprob > b.logprob || (a.logprob == b.logprob && a.token < b.token);
}

Candidate with_logit(std::span<const float> logits, std::size_t i) { return {static_cast<TokenId>(i), logits[i]}; }

bool any_above(const float* logits, std::size_t count, float limit) {
  bool any = false;
  for (std::size_t i = 0; i < count; ++i) any |= logits[i] > limit;
  return any;
}

}  // namespace

double log_sum_of(std::span<const float> logits, float highest, Scratch& scratch) {
  float* weights = scratch.weights.data();
  for (std::size_t i = 0; i < logits.size(); ++i) weights[i] = logits[i] - highest;
  scratch.exp_each(weights, logits.size());
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) sum += log_mass_of(weights[i]);
  return log_of_mass(sum);
}

// `best` is a heap with the least likely of the best tokens so far on top. Tokens are visited by ascending id, so a
// token that ties with the top one is not better.
std::span<const Candidate> list_likeliest(std::span<const float> logits, float highest, double log_sum,
                                          std::span<Candidate> room) {
  const std::span<Candidate> best = room.first(std::min(room.size(), logits.size()));
  if (best.empty()) return best;
  for (std::size_t i = 0; i < best.size(); ++i) best[i] = with_logit(logits, i);
  std::make_heap(best.begin(), best.end(), likelier);
  for (std::size_t first = best.size(); first < logits.size(); first += kLookAhead) {
    const std::size_t last = std::min(first + kLookAhead, logits.size());
    if (!any_above(logits.data() + first, last - first, best.front().logprob)) continue;
    for (std::size_t i = first; i < last; ++i) {
      if (!(logits[i] > best.front().logprob)) continue;
      std::pop_heap(best.begin(), best.end(), likelier);
      best.back() = with_logit(logits, i);
      std::push_heap(best.begin(), best.end(), likelier);
    }
  }
  std::sort_heap(best.begin(), best.end(), likelier);
  for (Candidate& candidate : best) candidate.logprob = logprob_of(candidate.logprob, highest, log_sum);
  return best;
}

}  // namespace quire::sample
