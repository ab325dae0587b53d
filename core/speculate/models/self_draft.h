// Drafts of the target's own weights, over its own cache: what of it is run, as options of a ModelDrafter.
// Shape   layers counted from 0.
// Fails   StartError: layers that the model does not have, a window of nothing.
// Source  LayerSkip (Elhoushi et al. 2024), Draft & Verify (Zhang et al. 2023), MagicDec (Sadhukhan et al. 2024).
#pragma once

#include <cstdint>
#include <span>

#include "core/model/config.h"
#include "core/speculate/models/model_drafter.h"

namespace quire::speculate {

// The first layers alone, [0, exit_layer), then the final norm and the head. What the target stored of these layers is what they
// would store themselves.
ModelDraftOptions layer_skip(const model::Config& config, std::uint32_t exit_layer);

// All but these parts: the attention of some layers and the feed-forward of some.
ModelDraftOptions draft_verify(const model::Config& config, std::span<const std::uint32_t> skipped_attention,
                               std::span<const std::uint32_t> skipped_mlp);
// All but these layers; with none named every second of the middle ones, since the first and the last change a row most.
ModelDraftOptions draft_verify(const model::Config& config, std::span<const std::uint32_t> skipped_layers);

// All of it, over the first `sinks` positions and the last `window` ones: drafts cost the same however long the context.
ModelDraftOptions magicdec(std::uint32_t sinks, std::uint32_t window);

}  // namespace quire::speculate
