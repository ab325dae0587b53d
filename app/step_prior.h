// What a step of this model should cost here, before one has run.
// Thread  any; pure.
// Source  ours: figures of a usual machine. The scale is learned from the first steps; what counts is from how many rows on
//         arithmetic takes longer than reading the weights.
#pragma once

#include <algorithm>
#include <cstdint>

#include "app/loaded_model.h"
#include "core/model/decoder.h"
#include "core/speculate/depth/step_costs.h"

namespace quire::app {

inline speculate::StepPrior step_prior(const LoadedModel& model, std::uint32_t threads) {
  constexpr double kBytesPerSecond = 1e10;  // a thread's share of memory
  constexpr double kFmasPerSecond = 5e10;   // of a thread, as matrix products get them
  speculate::StepPrior prior;
  prior.weight_bytes = std::max(1.0, static_cast<double>(model.decoder->step_bytes()));
  prior.fmas_per_row = std::max(1.0, static_cast<double>(model.num_parameters));
  prior.bytes_per_s = kBytesPerSecond * threads;
  prior.fmas_per_s = kFmasPerSecond * threads;
  prior.fixed_seconds = 2e-5;
  return prior;
}

}  // namespace quire::app
