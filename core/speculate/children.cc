#include "core/speculate/children.h"

#include <algorithm>

#include "core/sample/math.h"
#include "core/sample/noise.h"
#include "core/sample/token_tree.h"

namespace quire::speculate {
namespace {

// Top candidates to consider with noise; a token beyond them is too unlikely for its noise to lift it often.
constexpr std::uint32_t kNoisyDrafts = 64;
// log_likely of the tokens that fill up after the draws.
constexpr float kNeverDrawn = -30.0f;

}  // namespace

std::uint32_t Children::num_candidates_to_request(std::uint32_t num, const sample::Params& params, bool shared_noise) {
  if (sample::accepts_by_rejection(params)) return sample::kMaxTop;
  const bool with_noise = shared_noise && params.temperature >= sample::kGreedyTemperature;
  return std::min(with_noise ? std::max(num, kNoisyDrafts) : num, sample::kMaxTop);
}

std::span<const Child> Children::chosen(const ChildRequest& wanted, const sample::Params& params,
                                        sample::ProposalDistributions& distributions) {
  if (sample::accepts_by_rejection(params)) return proposed(wanted, params, distributions);
  const bool with_noise = wanted.shared_noise && params.temperature >= sample::kGreedyTemperature;
  return with_noise ? drawn(wanted.num, params, wanted.position) : likeliest(wanted.num);
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

std::span<const Child> Children::proposed(const ChildRequest& wanted, const sample::Params& params,
                                          sample::ProposalDistributions& distributions) {
  if (children_.empty()) return {};
  for (Child& child : children_) child.log_likely /= params.temperature;
  const std::size_t kept = num_kept(params);
  const float highest = children_.front().log_likely;
  const sample::Domain domain =
      sample::ahead(sample::Domain::kProposal, wanted.depth + (sample::TokenTree::kMaxNodes + 1) * wanted.drafter);
  weights_.assign(children_.size(), 0.0);
  scores_.assign(children_.size(), 0.0f);
  for (std::size_t i = 0; i < kept; ++i) {
    const Child& child = children_[i];
    weights_[i] = static_cast<double>(sample::exp_f32(child.log_likely - highest));
    scores_[i] =
        child.log_likely + sample::gumbel(params.seed, child.token, wanted.position, params.choice_index, domain);
  }
  picked_.clear();
  const std::size_t num = std::min<std::size_t>(wanted.num, children_.size());
  while (picked_.size() < num && draw_next(highest, distributions)) {
  }
  for (std::size_t i = 0; i < children_.size() && picked_.size() < num; ++i) {
    if (std::ranges::find(picked_, children_[i].token, &Child::token) != picked_.end()) continue;
    picked_.push_back({children_[i].token, kNeverDrawn});
    distributions.close();
  }
  return picked_;
}

// Draws the next token and adds its proposal distribution; false if no token with a positive probability is left.
bool Children::draw_next(float highest, sample::ProposalDistributions& distributions) {
  double sum = 0.0;
  for (const double weight : weights_) sum += weight;
  const std::size_t nobody = children_.size();
  std::size_t best = nobody;
  for (std::size_t i = 0; i < children_.size(); ++i) {
    const auto chance = static_cast<float>(weights_[i] / sum);
    if (!(chance > 0.0f)) continue;
    distributions.add(children_[i].token, chance);
    if (best == nobody || scores_[i] > scores_[best]) best = i;
  }
  if (best == nobody) return false;
  distributions.close();
  const float log_sum = highest + sample::log_f32(static_cast<float>(sum));
  picked_.push_back({children_[best].token, children_[best].log_likely - log_sum});
  weights_[best] = 0.0;
  return true;
}

void Children::scale_and_filter(const sample::Params& params) {
  for (Child& child : children_) child.log_likely /= params.temperature;
  children_.resize(num_kept(params));
}

// Number of tokens that pass the request's top-k, top-p and min-p as far as the listed candidates show it: a token that
// the target cannot sample is not drafted.
std::size_t Children::num_kept(const sample::Params& params) const {
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
  return keep;
}

}  // namespace quire::speculate
