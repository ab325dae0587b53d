#include "core/sample/filters.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/base/check.h"
#include "core/sample/math.h"

namespace quire::sample {
namespace {

std::size_t gather(float lowest, std::size_t vocab, Scratch& scratch);
std::uint64_t weigh(std::size_t count, Scratch& scratch);
float reach(std::uint64_t target, std::size_t count, bool by_mass, Scratch& scratch);
KeptRange typical(float typical_p, float lowest, std::size_t vocab, Scratch& scratch);

}  // namespace

KeptRange kept_range(const Params& params, std::size_t vocab, Scratch& scratch) {
  const bool use_top_k = params.top_k > 0 && static_cast<std::size_t>(params.top_k) < vocab;
  const bool use_top_p = params.top_p < 1.0f;
  const bool use_typical = params.typical_p < 1.0f;
  KeptRange range;
  if (params.min_p > 0.0f) range.lowest = log_f32(params.min_p);
  if (!use_top_k && !use_top_p && !use_typical) return range;

  std::size_t count = gather(range.lowest, vocab, scratch);
  if (use_top_k && count > static_cast<std::size_t>(params.top_k)) {
    range.lowest = reach(static_cast<std::uint64_t>(params.top_k), count, false, scratch);
    if (use_top_p) count = gather(range.lowest, vocab, scratch);
  }
  if (use_top_p) {
    const std::uint64_t target = mass_aimed_at(params.top_p, weigh(count, scratch));
    range.lowest = reach(target, count, true, scratch);  // for target 0 it is 0, the highest z
  }
  return use_typical ? typical(params.typical_p, range.lowest, vocab, scratch) : range;
}

namespace {

// Copies every z that is at least `lowest` and kLowestThatMatters to kept; returns their number.
std::size_t gather(float lowest, std::size_t vocab, Scratch& scratch) {
  const float from = std::max(lowest, kLowestThatMatters);
  const float* z = scratch.z.data();
  float* kept = scratch.kept.data();
  std::size_t count = 0;
  for (std::size_t i = 0; i < vocab; ++i) {
    kept[count] = z[i];
    count += z[i] >= from ? 1 : 0;
  }
  return count;
}

// weights = exp(kept); returns the sum of their masses.
std::uint64_t weigh(std::size_t count, Scratch& scratch) {
  float* weights = scratch.weights.data();
  std::copy_n(scratch.kept.data(), count, weights);
  scratch.exp_each(weights, count);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += mass_of(weights[i]);
  return sum;
}

// The largest value of kept[0, count), all <= 0, such that the count or mass at and above it reaches `target`. Radix
// select: each pass bins the values that share the digits found so far and keeps only the bin that reaches the target.
float reach(std::uint64_t target, std::size_t count, bool by_mass, Scratch& scratch) {
  float* kept = scratch.kept.data();
  float* weights = scratch.weights.data();
  std::uint64_t* bins = scratch.bins.data();
  std::uint32_t found = 0;
  for (const auto& [shift, width] : {std::pair{20u, 2048u}, std::pair{10u, 1024u}, std::pair{0u, 1024u}}) {
    std::fill_n(bins, width, 0);
    for (std::size_t i = 0; i < count; ++i) {
      bins[(key_of(kept[i]) >> shift) & (width - 1)] += by_mass ? mass_of(weights[i]) : 1;
    }
    std::uint32_t digit = 0;
    for (; bins[digit] < target; ++digit) {
      target -= bins[digit];
      CHECK_LT(digit, width - 1);  // the bins together reach the target
    }
    std::size_t left = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const float value = kept[i];
      const float weight = weights[i];
      kept[left] = value;
      weights[left] = weight;
      left += ((key_of(value) >> shift) & (width - 1)) == digit ? 1 : 0;
    }
    count = left;
    found |= digit << shift;
  }
  return -std::bit_cast<float>(found);
}

// The typical filter over every z of at least `lowest`: the range from the lowest to the highest z that it keeps.
KeptRange typical(float typical_p, float lowest, std::size_t vocab, Scratch& scratch) {
  const std::size_t count = gather(lowest, vocab, scratch);
  const std::uint64_t sum = weigh(count, scratch);
  float* kept = scratch.kept.data();
  std::uint64_t moment = 0;
  for (std::size_t i = 0; i < count; ++i) moment += mass_of(scratch.weights[i] * -kept[i]);
  const float center = mean_of(moment, sum);
  for (std::size_t i = 0; i < count; ++i) kept[i] = -distance_of(kept[i], center);
  const std::uint64_t target = mass_aimed_at(typical_p, sum);
  const float distance = -reach(std::max<std::uint64_t>(target, 1), count, true, scratch);

  const float from = std::max(lowest, kLowestThatMatters);
  KeptRange range{0.0f, -std::numeric_limits<float>::infinity()};
  for (std::size_t i = 0; i < vocab; ++i) {
    const float z = scratch.z[i];
    if (z < from || distance_of(z, center) > distance) continue;
    range.lowest = std::min(range.lowest, z);
    range.highest = std::max(range.highest, z);
  }
  return range;
}

}  // namespace
}  // namespace quire::sample
