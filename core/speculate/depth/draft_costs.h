// Cost of a propose() call in seconds, by the most nodes that a sequence is asked for and by the number of sequences.
// Owner   DepthControl.
// Thread  engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/speculate/depth/cost_curve.h"

namespace quire::speculate {

struct DraftPrior {
  double seconds_per_call = 1e-6;
  double seconds_per_node = 1e-6;
};

class DraftCosts {
 public:
  explicit DraftCosts(const DraftPrior& prior);

  void add(std::uint32_t nodes, std::uint32_t num_sequences, double seconds);
  double seconds(std::uint32_t nodes, std::uint32_t num_sequences) const;  // 0 if either is 0

 private:
  static constexpr std::size_t kSizes = 8;  // 1, 2, 4, .. 128 sequences; more count as 128
  const CostCurve& nearest(std::size_t size) const;

  std::vector<CostCurve> curves_;  // [kSizes]
};

}  // namespace quire::speculate
