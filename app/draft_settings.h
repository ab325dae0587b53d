// What --speculative-config means for each drafter: its options and limits, for who makes it and for who counts what it takes.
// Thread  any; pure, but for head_files().
// Fails   head_files(): StartError, no head is named or its directory is not there.
#pragma once

#include <cstdint>
#include <memory>

#include "app/config.h"
#include "app/loaded_model.h"
#include "core/model/config.h"
#include "core/model/model_files.h"
#include "core/speculate/heads/eagle_drafter.h"
#include "core/speculate/models/model_drafter.h"
#include "core/speculate/speculative_config.h"

namespace quire::app {

// The model inside the binary brings a head of its own: a server uses it unless something else is asked for.
Config with_embedded_head(Config config);

// By the target itself, over its own cache.
bool drafts_with_target(speculate::Method method);

// The head that is named, or the one that came with the model inside the binary.
std::unique_ptr<model::ModelFiles> head_files(const speculate::SpeculativeConfig& speculation,
                                              const ModelSource& target);

speculate::EagleOptions eagle_options(const speculate::SpeculativeConfig& speculation);
speculate::RunnerLimits head_runner_limits(const Config& config, std::uint32_t num_blocks, std::uint32_t max_model_len);

speculate::ModelDraftLimits model_draft_limits(const speculate::SpeculativeConfig& speculation, const Config& config,
                                               std::uint32_t num_blocks);
speculate::ModelDraftOptions model_draft_options(const speculate::SpeculativeConfig& speculation);
// Of a method that drafts with the target; not triforce's.
speculate::ModelDraftOptions self_draft_options(const speculate::SpeculativeConfig& speculation,
                                                const model::Config& target);
// Behind the pool's blocks in the target's cache; 0 where nobody drafts with it.
std::uint32_t num_target_scratch_blocks(const speculate::SpeculativeConfig& speculation, const Config& config,
                                        const model::Config& target);

}  // namespace quire::app
