#include "core/speculate/depth/draft_costs.h"

#include <algorithm>
#include <bit>

namespace quire::speculate {
namespace {

// Index of the first of 1, 2, 4, .. that is not less.
std::size_t size_of(std::uint32_t num_sequences) { return static_cast<std::size_t>(std::bit_width(num_sequences - 1)); }

}  // namespace

DraftCosts::DraftCosts(const DraftPrior& prior)
    : curves_(kSizes,
              CostCurve([&prior](double nodes) { return prior.seconds_per_call + prior.seconds_per_node * nodes; })) {}

void DraftCosts::add(std::uint32_t nodes, std::uint32_t num_sequences, double seconds) {
  if (num_sequences == 0) return;
  curves_[std::min(size_of(num_sequences), kSizes - 1)].add(nodes, seconds);
}

double DraftCosts::seconds(std::uint32_t nodes, std::uint32_t num_sequences) const {
  if (nodes == 0 || num_sequences == 0) return 0;
  return nearest(std::min(size_of(num_sequences), kSizes - 1)).seconds(nodes);
}

const CostCurve& DraftCosts::nearest(std::size_t size) const {
  for (std::size_t away = 0; away < kSizes; ++away) {
    if (size + away < kSizes && curves_[size + away].measured()) return curves_[size + away];
    if (size >= away && curves_[size - away].measured()) return curves_[size - away];
  }
  return curves_[size];
}

}  // namespace quire::speculate
