// Memory of the device that is left for K and V, measured after one step of maximum size, when the weights, the row
// buffers and the allocations of the driver and the kernels exist.
// Thread  one, while starting, in the engine's role.
// Fails   StartError: no memory for the step itself.
#pragma once

#include <cstdint>

#include "app/config/config.h"
#include "app/model/loaded_model.h"
#include "core/base/thread_role.h"
#include "core/flow/step_plan.h"
#include "core/speculate/speculative_config.h"

namespace quire::app {

// A plan of max_num_batched_tokens rows in as many sequences as possible, none longer than max_model_len.
flow::StepPlan fullest_step(const Config& config, std::uint32_t max_model_len, std::uint32_t vocab);

// With drafting, the row buffers of a head or draft model are assumed to be as large as the target's.
std::uint64_t free_behind_step(const Config& config, const LoadedModel& model,
                               const speculate::SpeculativeConfig& speculation) REQUIRES(engine_role);

}  // namespace quire::app
