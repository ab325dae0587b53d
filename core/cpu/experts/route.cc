#include "core/cpu/experts/route.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/sample/math.h"

namespace quire::cpu {
namespace {

using backend::RouteRule;
using backend::RouteScore;

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// True if a is chosen before b of a lower index.
bool is_higher(float a, float b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

std::uint32_t highest_of(std::span<const float> values) {
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < values.size(); ++i) {
    if (is_higher(values[i], values[best])) best = i;
  }
  return best;
}

// values[i] = exp(values[i] - their highest).
void exp_below_highest(const Kernels& kernels, std::span<float> values) {
  const float most = values[highest_of(values)];
  for (float& value : values) value = value - most;
  kernels.exp_each(values.data(), values.size());
}

void score(const Kernels& kernels, RouteScore kind, std::span<float> values) {
  switch (kind) {
    case RouteScore::kSoftmax: {
      exp_below_highest(kernels, values);
      const float sum = kernels.sum(values.data(), 0.0f, false, values.size());
      for (float& value : values) value = value / sum;
      return;
    }
    case RouteScore::kSigmoid:
      for (float& value : values) value = -value;
      kernels.exp_each(values.data(), values.size());
      for (float& value : values) value = 1.0f / (1.0f + value);
      return;
    case RouteScore::kLogit:
    case RouteScore::kSparsemixer:
      return;
  }
}

float sum_of_two_highest(std::span<const float> values) {
  float first = kLowest;
  float second = kLowest;
  for (const float value : values) {
    if (is_higher(value, first)) {
      second = first;
      first = value;
    } else if (is_higher(value, second)) {
      second = value;
    }
  }
  return values.size() == 1 ? first : first + second;
}

// The groups that experts are chosen from: those of which fewer than top_groups others go before.
class HighestGroups {
 public:
  HighestGroups(const RouteRule& rule, std::span<const float> choice)
      : rule_(rule), choice_(choice), size_(rule.num_experts / rule.num_groups) {}

  bool has(std::uint32_t group) const {
    if (rule_.num_groups == 1) return true;
    const float own = of(group);
    std::uint32_t before = 0;
    for (std::uint32_t other = 0; other < rule_.num_groups; ++other) {
      if (other == group) continue;
      const float sum = of(other);
      before += other < group ? !is_higher(own, sum) : is_higher(sum, own);
    }
    return before < rule_.top_groups;
  }
  std::uint32_t size() const { return size_; }

 private:
  float of(std::uint32_t group) const {
    const auto values = choice_.subspan(std::size_t{group} * size_, size_);
    return rule_.groups_by_highest ? values[highest_of(values)] : sum_of_two_highest(values);
  }

  const RouteRule& rule_;
  std::span<const float> choice_;
  std::uint32_t size_;
};

// The highest of `choice` among the experts of the highest groups, ascending by index.
void choose(const RouteRule& rule, std::span<const float> choice, std::span<std::uint32_t> experts) {
  const HighestGroups groups(rule, choice);
  std::uint32_t count = 0;
  for (std::uint32_t group = 0; group < rule.num_groups; ++group) {
    if (!groups.has(group)) continue;
    for (std::uint32_t expert = group * groups.size(); expert < (group + 1) * groups.size(); ++expert) {
      // Ordered by choice: an expert goes behind its equals, which have lower indices.
      std::uint32_t at = count;
      while (at > 0 && is_higher(choice[expert], choice[experts[at - 1]])) --at;
      if (at == experts.size()) continue;
      count = std::min(count + 1, static_cast<std::uint32_t>(experts.size()));
      for (std::uint32_t i = count - 1; i > at; --i) experts[i] = experts[i - 1];
      experts[at] = expert;
    }
  }
  std::ranges::sort(experts);
}

void softmax(std::span<float> weights) {
  const float most = weights[highest_of(weights)];
  float sum = 0.0f;
  for (float& weight : weights) sum = sum + (weight = sample::exp_f32(weight - most));
  for (float& weight : weights) weight = weight / sum;
}

void finish(const RouteRule& rule, std::span<float> weights) {
  if (rule.score == RouteScore::kLogit) softmax(weights);
  if (rule.normed) {
    float sum = 0.0f;
    for (const float weight : weights) sum = sum + weight;
    const float divisor = std::max(sum + rule.norm_eps, rule.norm_least);
    for (float& weight : weights) weight = weight / divisor;
  }
  for (float& weight : weights) weight = weight * rule.scale;
}

// logits: of chosen experts -inf.
float sparsemixer_weight(const Kernels& kernels, float margin, float most, std::span<const float> logits,
                         std::span<float> kept) {
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const bool is_far = (most - logits[i]) / std::max(std::abs(logits[i]), most) > margin;
    kept[i] = is_far || logits[i] == kLowest ? kLowest : logits[i] - most;
  }
  kernels.exp_each(kept.data(), kept.size());
  return 1.0f / kernels.sum(kept.data(), 0.0f, false, kept.size());
}

void mix_sparsely(const Kernels& kernels, const RouteRule& rule, std::span<float> logits, std::span<float> kept,
                  std::span<std::uint32_t> experts, std::span<float> weights) {
  for (std::size_t i = 0; i < experts.size(); ++i) {
    const std::uint32_t expert = highest_of(logits);
    const float weight = sparsemixer_weight(kernels, rule.margin, logits[expert], logits, kept) * rule.scale;
    logits[expert] = kLowest;
    std::size_t at = i;
    for (; at > 0 && experts[at - 1] > expert; --at) {
      experts[at] = experts[at - 1];
      weights[at] = weights[at - 1];
    }
    experts[at] = expert;
    weights[at] = weight;
  }
}

}  // namespace

void route_row(const Kernels& kernels, const RouteRule& rule, const HostRouteVectors& vectors, std::span<float> logits,
               std::span<float> scores, std::span<std::uint32_t> experts, std::span<float> weights) {
  if (rule.score == RouteScore::kSparsemixer) return mix_sparsely(kernels, rule, logits, scores, experts, weights);
  score(kernels, rule.score, logits);
  const float* bias = vectors.bias;
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = bias == nullptr ? logits[i] : logits[i] + bias[i];
  choose(rule, scores, experts);
  for (std::size_t i = 0; i < experts.size(); ++i) weights[i] = logits[experts[i]];
  finish(rule, weights);
  if (vectors.scales == nullptr) return;
  for (std::size_t i = 0; i < experts.size(); ++i) weights[i] = weights[i] * vectors.scales[experts[i]];
}

}  // namespace quire::cpu
