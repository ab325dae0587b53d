// Options of the engine from the operator's settings.
// Thread  any; pure, except for the random hash key of the prefix index.
#pragma once

#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/model/memory_plan.h"
#include "core/engine/engine.h"
#include "core/kv/cache_group.h"
#include "core/model/arch/config.h"
#include "core/model/run/kv_groups.h"
#include "core/speculate/speculative_config.h"

namespace quire::app {

// The groups of the model's layers that have blocks of their own. One group of all layers if drafts are made by layers
// of the target: they read its K and V by one block table.
model::KvGroups kv_groups(const Config& config, const model::ModelSpec& model);
std::vector<kv::CacheGroup> cache_groups(const model::KvGroups& groups);
// Sets the scheduler's option that depends on the cache's type: whether K and V have residual groups.
void set_model_options(backend::KvType kv_type, schedule::SchedulerOptions& options);

// The parsed --speculative-config of settings that were checked.
speculate::SpeculativeConfig speculation_of(const Config& config);

engine::EngineOptions engine_options(const Config& config, const model::ModelSpec& model, const MemoryPlan& plan,
                                     backend::KvType kv_type, const std::string& numeric_mode);

}  // namespace quire::app
