#include "app/drafting/draft_settings.h"

#include <algorithm>
#include <utility>

#include "app/model/embedded_model.h"
#include "core/base/start_error.h"
#include "core/speculate/models/self_draft.h"
#include "core/speculate/models/triforce_drafter.h"

namespace quire::app {

using speculate::Method;
using speculate::SpeculativeConfig;

Config with_embedded_head(Config config) {
  const bool embedded = config.model.empty() || config.model == kEmbeddedModel;
  if (embedded && config.speculative_config.empty() && !serves_round_robin(config))
    config.speculative_config = R"({"method": "eagle3"})";
  return config;
}

std::unique_ptr<model::ModelFiles> head_files(const SpeculativeConfig& speculation, const ModelSource& target) {
  if (!speculation.models.empty()) return model::ModelFiles::directory(speculation.models.front());
  if (speculation.method == Method::kMedusa || speculation.method == Method::kHydra) {
    throw StartError(std::string("--speculative-config: model is missing: the directory of ") +
                     (speculation.method == Method::kMedusa ? "Medusa" : "Hydra") + " heads");
  }
  if (target.name == kEmbeddedModel) return embedded_head();
  throw StartError("--speculative-config: model is missing: the directory of a draft head for this model");
}

speculate::EagleOptions eagle_options(const SpeculativeConfig& speculation) {
  speculate::EagleOptions options;
  options.width = speculation.topk;
  options.max_depth = speculation.num_speculative_tokens;
  options.shared_noise = speculation.shared_noise;
  return options;
}

speculate::RunnerLimits head_runner_limits(const Config& config, std::uint32_t num_blocks,
                                           std::uint32_t max_model_len) {
  speculate::RunnerLimits limits;
  limits.max_rows = config.max_num_batched_tokens;
  limits.max_sequences = config.max_num_seqs;
  limits.max_model_len = max_model_len;
  limits.block_tokens = config.block_size;
  limits.num_blocks = num_blocks;
  return limits;
}

speculate::ModelDraftLimits model_draft_limits(const SpeculativeConfig& speculation, const Config& config,
                                               std::uint32_t num_blocks) {
  speculate::ModelDraftLimits limits;
  limits.max_sequences = config.max_num_seqs;
  limits.max_rows = config.max_num_batched_tokens;
  limits.max_depth = speculation.num_speculative_tokens;
  limits.block_tokens = config.block_size;
  limits.num_blocks = num_blocks;
  return limits;
}

speculate::ModelDraftOptions model_draft_options(const SpeculativeConfig& speculation) {
  speculate::ModelDraftOptions options;
  options.shared_noise = speculation.shared_noise;
  // Triforce refines the draft, which is then not a sample of the draft model's distribution.
  options.proposes = speculation.method != Method::kTriforce;
  if (speculation.topk > 1) options.widths = {speculation.topk};
  return options;
}

speculate::ModelDraftOptions self_draft_options(const SpeculativeConfig& speculation, const model::ModelSpec& target) {
  speculate::ModelDraftOptions options;
  if (speculation.method == Method::kLayerSkip) {
    options = speculate::layer_skip(
        target, speculation.exit_layer != 0 ? speculation.exit_layer : std::max(target.num_layers() / 2, 1u));
  } else if (speculation.method == Method::kDraftVerify) {
    options = speculate::draft_verify(target, speculation.skip_layers);
  } else {
    options = speculate::magicdec(speculation.sinks, speculation.window);
  }
  options.shared_noise = speculation.shared_noise;
  if (speculation.topk > 1) options.widths = {speculation.topk};
  return options;
}

std::uint32_t num_target_scratch_blocks(const SpeculativeConfig& speculation, const Config& config,
                                        const model::ModelSpec& target) {
  if (!speculate::drafts_with_target(speculation.method)) return 0;
  const speculate::ModelDraftLimits limits = model_draft_limits(speculation, config, 0);
  return speculation.method == Method::kTriforce
             ? speculate::TriforceDrafter::num_scratch_blocks(limits)
             : speculate::ModelDrafter::num_scratch_blocks(limits, self_draft_options(speculation, target));
}

}  // namespace quire::app
