#include "core/sample/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>

namespace quire::sample {
namespace {

bool finite(std::span<const float> logits) {
  const auto bad = [](float x) { return std::isnan(x) || (std::isinf(x) && x > 0); };
  return std::none_of(logits.begin(), logits.end(), bad) &&
         std::any_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); });
}

// The number of leading values, best first, that a filter keeps if it asks for `count`: with ties of the last one.
std::size_t with_ties(const std::vector<double>& sorted, std::size_t count) {
  while (count < sorted.size() && sorted[count] == sorted[count - 1]) ++count;
  return count;
}

struct Range {
  double lowest;
  double highest;
};

// The range of the z nearest to their mean that together have typical_p of the mass. z: best first.
Range typical(const std::vector<double>& z, double typical_p) {
  double sum = 0.0;
  double mean = 0.0;
  for (const double x : z) sum += std::exp(x);
  for (const double x : z) mean += std::exp(x) > 0.0 ? x * (std::exp(x) / sum) : 0.0;  // -inf: masked
  std::vector<double> nearest = z;
  const auto distance = [mean](double x) { return std::abs(x - mean); };
  std::sort(nearest.begin(), nearest.end(), [&](double a, double b) { return distance(a) < distance(b); });
  std::size_t count = 1;
  for (double mass = std::exp(nearest[0]); mass < typical_p * sum && count < nearest.size(); ++count) {
    mass += std::exp(nearest[count]);
  }
  while (count < nearest.size() && distance(nearest[count]) == distance(nearest[count - 1])) ++count;
  nearest.resize(count);
  return {*std::min_element(nearest.begin(), nearest.end()), *std::max_element(nearest.begin(), nearest.end())};
}

// The range of z that the filters keep.
Range filtered(std::vector<double> z, const Params& params) {
  std::sort(z.begin(), z.end(), std::greater<>());
  const double min_p = params.min_p;
  z.erase(std::find_if(z.begin(), z.end(), [&](double x) { return std::exp(x) < min_p; }), z.end());
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < z.size()) {
    z.resize(with_ties(z, static_cast<std::size_t>(params.top_k)));
  }
  if (params.top_p < 1.0f) {
    const auto add = [](double sum, double x) { return sum + std::exp(x); };
    const double wanted = static_cast<double>(params.top_p) * std::accumulate(z.begin(), z.end(), 0.0, add);
    std::size_t count = 1;
    for (double mass = 1.0; mass < wanted && count < z.size(); ++count) mass += std::exp(z[count]);
    z.resize(with_ties(z, count));
  }
  return params.typical_p < 1.0f ? typical(z, params.typical_p) : Range{z.back(), z.front()};
}

}  // namespace

std::vector<double> reference_distribution(std::span<const float> logits, const Params& params) {
  if (!finite(logits)) return {};
  std::vector<double> distribution(logits.size(), 0.0);
  const auto highest = std::max_element(logits.begin(), logits.end());  // the first of equals
  if (params.temperature < kGreedyTemperature) {
    distribution[static_cast<std::size_t>(highest - logits.begin())] = 1.0;
    return distribution;
  }
  std::vector<double> z(logits.size());
  for (std::size_t i = 0; i < z.size(); ++i) {
    z[i] = (static_cast<double>(logits[i]) - static_cast<double>(*highest)) / static_cast<double>(params.temperature);
  }
  const Range kept = filtered(z, params);
  double sum = 0.0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    sum += distribution[i] = z[i] >= kept.lowest && z[i] <= kept.highest ? std::exp(z[i]) : 0.0;
  }
  for (double& p : distribution) p /= sum;
  return distribution;
}

std::vector<double> reference_logprobs(std::span<const float> logits) {
  if (!finite(logits)) return {};
  std::vector<double> logprobs(logits.begin(), logits.end());
  const double highest = *std::max_element(logprobs.begin(), logprobs.end());
  double sum = 0.0;
  for (double& x : logprobs) sum += std::exp(x -= highest);
  for (double& x : logprobs) x -= std::log(sum);
  return logprobs;
}

}  // namespace quire::sample
