// Options and limits of each drafter from --speculative-config: used to make the drafters and to count their memory.
// Thread  any; pure, except for head_files().
// Fails   head_files(): StartError if no head is named or its directory is missing.
#pragma once

#include <cstdint>
#include <memory>

#include "app/config/config.h"
#include "app/model/loaded_model.h"
#include "core/model/arch/config.h"
#include "core/model/source/model_files.h"
#include "core/speculate/heads/eagle_drafter.h"
#include "core/speculate/models/model_drafter.h"
#include "core/speculate/speculative_config.h"

namespace quire::app {

// The embedded model has a draft head of its own, and a server uses it unless another method is configured.
Config with_embedded_head(Config config);

// Files of the configured head, or of the embedded model's own.
std::unique_ptr<model::ModelFiles> head_files(const speculate::SpeculativeConfig& speculation,
                                              const ModelSource& target);

speculate::EagleOptions eagle_options(const speculate::SpeculativeConfig& speculation);
speculate::RunnerLimits head_runner_limits(const Config& config, std::uint32_t num_blocks, std::uint32_t max_model_len);

speculate::ModelDraftLimits model_draft_limits(const speculate::SpeculativeConfig& speculation, const Config& config,
                                               std::uint32_t num_blocks);
speculate::ModelDraftOptions model_draft_options(const speculate::SpeculativeConfig& speculation);
// Options of a method that drafts with the target, except triforce.
speculate::ModelDraftOptions self_draft_options(const speculate::SpeculativeConfig& speculation,
                                                const model::ModelSpec& target);
// Scratch blocks after the pool's blocks in the target's KV cache; 0 if no method drafts with the target.
std::uint32_t num_target_scratch_blocks(const speculate::SpeculativeConfig& speculation, const Config& config,
                                        const model::ModelSpec& target);

}  // namespace quire::app
