// Options of a ModelDrafter that drafts with the target's own weights on its own cache, by running less of it.
// Shape   layers are counted from 0.
// Fails   StartError: layers that the model does not have, a window of 0 positions.
// Source  LayerSkip (Elhoushi et al. 2024), Draft & Verify (Zhang et al. 2023), MagicDec (Sadhukhan et al. 2024).
#pragma once

#include <cstdint>
#include <span>

#include "core/model/arch/config.h"
#include "core/speculate/models/model_drafter.h"

namespace quire::speculate {

// Runs layers [0, exit_layer), then the final norm and the head. The target's K and V of these layers equal the
// draft's.
ModelDraftOptions layer_skip(const model::ModelSpec& config, std::uint32_t exit_layer);

// Leaves out the attention of some layers and the feed-forward of some.
ModelDraftOptions draft_verify(const model::ModelSpec& config, std::span<const std::uint32_t> skipped_attention,
                               std::span<const std::uint32_t> skipped_mlp);
// Leaves out whole layers; by default every second of the middle ones, since the first and the last change a row most.
ModelDraftOptions draft_verify(const model::ModelSpec& config, std::span<const std::uint32_t> skipped_layers);

// Runs all layers over the first `sinks` and the last `window` positions: the cost does not grow with the context.
ModelDraftOptions magicdec(std::uint32_t sinks, std::uint32_t window);

}  // namespace quire::speculate
