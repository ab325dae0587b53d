#include "core/speculate/children.h"

#include <algorithm>

#include "core/sample/math.h"
#include "core/sample/noise.h"

namespace quire::speculate {
namespace {

// Beyond these a guess is too unlikely for its noise to bring it back often.
constexpr std::uint32_t kNoisyGuesses = 64;

}  // namespace

std::uint32_t Children::num_guesses(std::uint32_t num, bool with_noise) {
  return std::min(with_noise ? std::max(num, kNoisyGuesses) : num, sample::kMaxTop);
}

std::span<const Child> Children::likeliest(std::uint32_t num) {
  return std::span(children_).first(std::min<std::size_t>(num, children_.size()));
}

std::span<const Child> Children::drawn(std::uint32_t num, const sample::Params& params, std::uint32_t position) {
  if (children_.empty()) return {};
  scale_and_filter(params);
  float highest = -1e30f;
  for (Child& child : children_) {
    child.log_likely +=
        sample::gumbel(params.seed, child.token, position, params.choice_index, sample::Domain::kTarget);
    highest = std::max(highest, child.log_likely);
  }
  float sum = 0.0f;
  for (const Child& child : children_) sum += sample::exp_f32(child.log_likely - highest);
  const float log_sum = highest + sample::log_f32(sum);
  for (Child& child : children_) child.log_likely -= log_sum;
  std::ranges::sort(children_, [](const Child& a, const Child& b) {
    return a.log_likely != b.log_likely ? a.log_likely > b.log_likely : a.token < b.token;
  });
  return likeliest(num);
}

std::span<const Child> Children::proposed(const sample::Params& params, std::uint32_t position, std::uint32_t depth,
                                          sample::ProposalLaws& laws) {
  if (children_.empty()) return {};
  scale_and_filter(params);
  const float highest = children_.front().log_likely;
  double sum = 0.0;
  for (const Child& child : children_) sum += static_cast<double>(sample::exp_f32(child.log_likely - highest));
  const float log_sum = highest + sample::log_f32(static_cast<float>(sum));
  const sample::Domain domain = sample::ahead(sample::Domain::kProposal, depth);
  Child best;
  float best_score = 0.0f;
  for (const Child& child : children_) {
    const auto chance = static_cast<float>(static_cast<double>(sample::exp_f32(child.log_likely - highest)) / sum);
    if (!(chance > 0.0f)) continue;
    laws.add(child.token, chance);
    const float score =
        child.log_likely + sample::gumbel(params.seed, child.token, position, params.choice_index, domain);
    if (best.token >= 0 && score <= best_score) continue;
    best = {child.token, child.log_likely - log_sum};
    best_score = score;
  }
  laws.close();
  children_.assign(1, best);
  return children_;
}

void Children::scale_and_filter(const sample::Params& params) {
  for (Child& child : children_) child.log_likely /= params.temperature;
  filter(params);
}

// The request's filters as far as these guesses know: what the target would not draw is not guessed.
void Children::filter(const sample::Params& params) {
  std::size_t keep = children_.size();
  if (params.top_k > 0) keep = std::min(keep, static_cast<std::size_t>(params.top_k));
  const float highest = children_.front().log_likely;
  float sum = 0.0f;
  for (const Child& child : children_) sum += sample::exp_f32(child.log_likely - highest);
  float above = 0.0f;
  for (std::size_t i = 1; i < keep; ++i) {
    const float weight = sample::exp_f32(children_[i].log_likely - highest);
    above += sample::exp_f32(children_[i - 1].log_likely - highest);
    if (weight < params.min_p || above >= params.top_p * sum) keep = i;
  }
  children_.resize(keep);
}

}  // namespace quire::speculate
