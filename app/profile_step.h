// What is left of a device's own memory for K and V: measured behind a step with the most rows, when weights, row buffers and
// whatever the driver and the kernels take are there.
// Thread  one, while starting: the engine's role.
// Fails   StartError: no memory for the step itself.
#pragma once

#include <cstdint>

#include "app/config.h"
#include "app/loaded_model.h"
#include "core/base/thread_role.h"
#include "core/flow/step_plan.h"
#include "core/speculate/speculative_config.h"

namespace quire::app {

// max_num_batched_tokens rows, in as many sequences as there may be, no longer than the decoder's longest.
flow::StepPlan fullest_step(const Config& config, std::uint32_t max_model_len, std::uint32_t vocab);

// Row buffers of a head or draft model are taken to be as large as the target's.
std::uint64_t free_behind_step(const Config& config, const LoadedModel& model,
                               const speculate::SpeculativeConfig& speculation) REQUIRES(engine_role);

}  // namespace quire::app
