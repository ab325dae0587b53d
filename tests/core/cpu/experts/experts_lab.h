// Oracles and rigs of the tests of mixtures: a router's logits as a route, and the equations of route() taken literally in f32.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/sample/math.h"
#include "tests/core/cpu/op_kinds.h"

namespace quire::cpu::test {

struct PlainRoute {
  std::vector<std::uint32_t> experts;  // ascending
  std::vector<float> weights;
};

inline float plain_sum(const std::vector<float>& values) {
  float sum = 0.0f;
  for (const float value : values) sum = sum + value;
  return sum;
}
inline std::vector<float> exps_below(std::vector<float> values, float most) {
  for (float& value : values) value = sample::exp_f32(value - most);
  return values;
}
inline float most_of(const std::vector<float>& values) { return *std::ranges::max_element(values); }

inline std::vector<float> plain_scores(const backend::RouteRule& rule, const std::vector<float>& z) {
  std::vector<float> s = z;
  if (rule.score == backend::RouteScore::kSoftmax) {
    s = exps_below(z, most_of(z));
    const float sum = sum16(s, false);
    for (float& value : s) value = value / sum;
  }
  if (rule.score == backend::RouteScore::kSigmoid) {
    for (float& value : s) value = 1.0f / (1.0f + sample::exp_f32(-value));
  }
  return s;
}

// The indices of the `count` highest values, of equals the first ones; all by sorting.
inline std::vector<std::uint32_t> highest(const std::vector<float>& values, std::size_t count) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return values[a] > values[b]; });
  order.resize(count);
  std::ranges::sort(order);
  return order;
}

inline std::vector<float> in_open_groups(const backend::RouteRule& rule, std::vector<float> choice) {
  const std::size_t size = choice.size() / rule.num_groups;
  std::vector<float> sums;
  for (std::size_t first = 0; first < choice.size(); first += size) {
    std::vector<float> group(choice.begin() + first, choice.begin() + first + size);
    std::ranges::sort(group, std::greater());
    sums.push_back(size == 1 || rule.groups_by_highest ? group[0] : group[0] + group[1]);
  }
  const std::vector<std::uint32_t> open = highest(sums, rule.top_groups);
  for (std::size_t i = 0; i < choice.size(); ++i) {
    if (std::ranges::find(open, i / size) == open.end()) choice[i] = -INFINITY;
  }
  return choice;
}

inline PlainRoute plain_sparsemixer(const backend::RouteRule& rule, std::vector<float> z) {
  std::vector<std::pair<std::uint32_t, float>> pairs;
  for (std::uint32_t i = 0; i < rule.top_k; ++i) {
    const float most = most_of(z);
    const auto expert = static_cast<std::uint32_t>(std::ranges::find(z, most) - z.begin());
    std::vector<float> kept;
    for (const float value : z) {
      const bool is_near = value != -INFINITY && !((most - value) / std::max(std::abs(value), most) > rule.margin);
      kept.push_back(is_near ? sample::exp_f32(value - most) : 0.0f);
    }
    pairs.emplace_back(expert, 1.0f / sum16(kept, false) * rule.scale);
    z[expert] = -INFINITY;
  }
  std::ranges::sort(pairs);
  PlainRoute route;
  for (const auto& [expert, weight] : pairs) route.experts.push_back(expert), route.weights.push_back(weight);
  return route;
}

inline PlainRoute plain_route(const backend::RouteRule& rule, const std::vector<float>& z,
                              const std::vector<float>& bias = {}, const std::vector<float>& scales = {}) {
  if (rule.score == backend::RouteScore::kSparsemixer) return plain_sparsemixer(rule, z);
  const std::vector<float> s = plain_scores(rule, z);
  std::vector<float> choice = s;
  for (std::size_t i = 0; i < bias.size(); ++i) choice[i] = choice[i] + bias[i];
  PlainRoute route;
  route.experts = highest(in_open_groups(rule, choice), rule.top_k);
  for (const std::uint32_t expert : route.experts) route.weights.push_back(s[expert]);
  if (rule.score == backend::RouteScore::kLogit) {
    route.weights = exps_below(route.weights, most_of(route.weights));
    const float sum = plain_sum(route.weights);
    for (float& weight : route.weights) weight = weight / sum;
  }
  if (rule.normed) {
    const float divisor = std::max(plain_sum(route.weights) + rule.norm_eps, rule.norm_least);
    for (float& weight : route.weights) weight = weight / divisor;
  }
  for (float& weight : route.weights) weight = weight * rule.scale;
  for (std::size_t i = 0; i < route.experts.size() && !scales.empty(); ++i) {
    route.weights[i] = route.weights[i] * scales[route.experts[i]];
  }
  return route;
}

// The experts and weights of rows with these logits.
inline PlainRoute routed(backend::Ops& ops, const backend::RouteRule& rule, const std::vector<float>& logits,
                         const std::vector<float>& bias = {}, const std::vector<float>& scales = {}) {
  const auto rows = static_cast<std::uint32_t>(logits.size() / rule.num_experts);
  const auto routes = ops.make_routes(rows, rule.num_experts, rule.top_k);
  const auto buffer = buffer_of(ops, logits, rows);
  const auto biases = bias.empty() ? nullptr : ops.upload(bias);
  const auto factors = scales.empty() ? nullptr : ops.upload(scales);
  ops.route(*buffer, rule, {biases.get(), factors.get()}, rows, *routes);
  PlainRoute out{std::vector<std::uint32_t>(rows * rule.top_k), std::vector<float>(rows * rule.top_k)};
  ops.read_routes(*routes, rows, out.experts, out.weights);
  return out;
}

}  // namespace quire::cpu::test
