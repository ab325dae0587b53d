// What a step of the target costs by the number of its rows, in seconds: expected from the weights' bytes and the multiply-adds
// of a row, learned from the steps that were served.
// Owner   DepthControl; app keeps the text beside the packed weights.
// Thread  engine.
// Fails   read(): the text is not one of ours; says why, and nothing changed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/speculate/depth/cost_curve.h"

namespace quire::speculate {

// What the machine and the model let expect; all above 0 but `fixed_seconds`.
struct StepPrior {
  double weight_bytes = 0;  // read once a step
  double bytes_per_s = 0;
  double fmas_per_row = 0;
  double fmas_per_s = 0;
  double fixed_seconds = 0;
};

class StepCosts {
 public:
  explicit StepCosts(const StepPrior& prior);

  void add(std::uint32_t rows, double seconds) { curve_.add(rows, seconds); }
  // On average of a random number of rows, where it is not whole.
  double seconds(double rows) const { return rows > 0 ? curve_.seconds(rows) : 0; }
  double hopeful_seconds(double rows) const { return curve_.hopeful_seconds(rows); }
  double weight_at(double rows) const { return curve_.weight_at(rows); }

  // A line for each number of rows: rows, seconds, weight.
  std::string text() const;
  Result<Done> read(std::string_view text);

 private:
  CostCurve curve_;
};

}  // namespace quire::speculate
