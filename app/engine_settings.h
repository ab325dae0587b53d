// What the engine is told of the operator's decisions.
// Thread  any; pure, but for the hash key, which is drawn.
#pragma once

#include <string>

#include "app/config.h"
#include "app/memory_plan.h"
#include "core/engine/engine.h"
#include "core/model/config.h"
#include "core/speculate/speculative_config.h"

namespace quire::app {

// How far back the layer looks that looks farthest, in positions; 0: some layer sees everything.
std::uint32_t window_of(const model::Config& model);
// What the scheduler must know of the model: how far it looks back, and how its K and V are stored.
void tell_of_model(const model::Config& model, backend::KvType kv_type, schedule::SchedulerOptions& options);

// Of settings that were checked.
speculate::SpeculativeConfig speculation_of(const Config& config);

engine::EngineOptions engine_options(const Config& config, const model::Config& model, const MemoryPlan& plan,
                                     backend::KvType kv_type, const std::string& numeric_mode);

}  // namespace quire::app
