// Expected cost of a step of this model on this machine, before any step has run.
// Thread  any; pure.
// Source  ours: figures of a typical machine. The scale is corrected by the first steps; what matters is the number of
//         rows from which on arithmetic takes longer than reading the weights.
#pragma once

#include <algorithm>
#include <cstdint>

#include "app/model/loaded_model.h"
#include "core/model/decoder.h"
#include "core/speculate/depth/step_costs.h"

namespace quire::app {

inline speculate::StepPrior step_prior(const LoadedModel& model, std::uint32_t threads) {
  constexpr double kBytesPerSecond = 1e10;  // memory bandwidth per thread
  constexpr double kFmasPerSecond = 5e10;   // multiply-adds in matrix products, per thread
  speculate::StepPrior prior;
  prior.weight_bytes = std::max(1.0, static_cast<double>(model.decoder->step_bytes()));
  prior.fmas_per_row = std::max(1.0, static_cast<double>(model.num_parameters));
  prior.bytes_per_s = kBytesPerSecond * threads;
  prior.fmas_per_s = kFmasPerSecond * threads;
  prior.fixed_seconds = 2e-5;
  return prior;
}

}  // namespace quire::app
