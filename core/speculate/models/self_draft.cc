#include "core/speculate/models/self_draft.h"

#include <string>

#include "core/base/start_error.h"

namespace quire::speculate {

ModelDraftOptions layer_skip(const model::ModelSpec& config, std::uint32_t exit_layer) {
  if (exit_layer == 0 || exit_layer > config.num_layers()) {
    throw StartError("layer_skip: exit_layer " + std::to_string(exit_layer) + " is outside [1, " +
                     std::to_string(config.num_layers()) + "], the model's layers");
  }
  ModelDraftOptions options;
  options.method = "layer_skip";
  options.parts.assign(config.num_layers(), {.attention = false, .mlp = false});
  for (std::uint32_t layer = 0; layer < exit_layer; ++layer) options.parts[layer] = {};
  return options;
}

ModelDraftOptions draft_verify(const model::ModelSpec& config, std::span<const std::uint32_t> skipped_attention,
                               std::span<const std::uint32_t> skipped_mlp) {
  ModelDraftOptions options;
  options.method = "draft_verify";
  options.parts.assign(config.num_layers(), {});
  std::string problems;
  const auto leave_out = [&](std::span<const std::uint32_t> layers, bool model::LayerParts::*part, const char* name) {
    for (const std::uint32_t layer : layers) {
      if (layer < config.num_layers()) {
        options.parts[layer].*part = false;
      } else {
        problems += "; " + std::string(name) + " of layer " + std::to_string(layer) + " of " +
                    std::to_string(config.num_layers());
      }
    }
  };
  leave_out(skipped_attention, &model::LayerParts::attention, "attention");
  leave_out(skipped_mlp, &model::LayerParts::mlp, "mlp");
  if (!problems.empty()) throw StartError("draft_verify: layers to skip that the model does not have" + problems);
  return options;
}

ModelDraftOptions draft_verify(const model::ModelSpec& config, std::span<const std::uint32_t> skipped_layers) {
  if (!skipped_layers.empty()) return draft_verify(config, skipped_layers, skipped_layers);
  std::vector<std::uint32_t> layers;
  for (std::uint32_t layer = 2; layer + 2 < config.num_layers(); layer += 2) layers.push_back(layer);
  return draft_verify(config, layers, layers);
}

ModelDraftOptions magicdec(std::uint32_t sinks, std::uint32_t window) {
  if (window == 0) throw StartError("magicdec: window is 0; it must be at least 1");
  ModelDraftOptions options;
  options.method = "magicdec";
  options.context = {sinks, window};
  return options;
}

}  // namespace quire::speculate
