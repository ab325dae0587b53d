// Cost of a target step in seconds by its number of rows: a roofline prior (bytes of weights, multiply-adds per row),
// corrected by the steps that were measured.
// Owner   DepthControl; app stores text() beside the packed weights.
// Thread  engine.
// Fails   read(): the reason if the text is not in this format; nothing changes then.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/speculate/depth/cost_curve.h"

namespace quire::speculate {

// Roofline of machine and model; all > 0 except fixed_seconds.
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
  // A fraction of a row is an average over random numbers of rows.
  double seconds(double rows) const { return rows > 0 ? curve_.seconds(rows) : 0; }
  double hopeful_seconds(double rows) const { return curve_.hopeful_seconds(rows); }
  double weight_at(double rows) const { return curve_.weight_at(rows); }

  // One line per cell: rows, seconds, weight.
  std::string text() const;
  Result<Done> read(std::string_view text);

 private:
  CostCurve curve_;
};

}  // namespace quire::speculate
