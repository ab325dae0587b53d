// Weights of a draft head, checked against its config and packed for a backend.
// Shape   E hidden, S width of the target's states, W input width of the first layer: E, or 2E in EAGLE-3; Vd draft
//         vocabulary.
// Names   "midlayer." is read as "layers.0.", and "model." in front is ignored.
// Owner   HeadWeights owns the packed weights; nothing points into the files afterwards.
// Thread  one, at startup.
// Fails   StartError with every missing, unexpected, wrongly shaped or unreadable tensor, before anything is packed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/backend/ops.h"
#include "core/base/ids.h"
#include "core/model/source/model_files.h"
#include "core/speculate/heads/head_config.h"
#include "core/speculate/heads/head_tensors.h"

namespace quire::speculate {

struct HeadLayer {
  // [E]; in EAGLE-3's first layer of the embedding alone; optional in EAGLE-1's first layer.
  std::unique_ptr<backend::Vector> input_norm;
  std::unique_ptr<backend::Vector> feature_norm;  // [E]; EAGLE-3's first layer only
  std::unique_ptr<backend::Weight> qkv;           // [(H+2G)·D, W]
  std::unique_ptr<backend::Vector> q_norm;        // [D]; optional
  std::unique_ptr<backend::Vector> k_norm;
  std::unique_ptr<backend::Weight> out;        // [E, H·D]
  std::unique_ptr<backend::Vector> post_norm;  // [E]
  std::unique_ptr<backend::Weight> gate_up;    // [2F, E]
  std::unique_ptr<backend::Weight> down;       // [E, F]
};

struct HeadWeights {
  std::unique_ptr<backend::Vector> states_norm;               // [S]; optional
  std::vector<std::unique_ptr<backend::Vector>> state_norms;  // one per state; optional
  // EAGLE-3 [E, S]; EAGLE-1 [E, 2E], columns embedding | feature; null in a prefix and for the last state alone.
  std::unique_ptr<backend::Weight> fc;
  std::unique_ptr<backend::Weight> embed;  // [V, E]; null: the target's
  std::vector<HeadLayer> layers;
  std::unique_ptr<backend::Vector> norm;         // [E], multiplied by the logit scale; null in EAGLE-1
  std::unique_ptr<backend::Vector> output_norm;  // norm without that factor, for the next feature; optional
  std::unique_ptr<backend::Weight> head;         // [Vd, E]; null: the target's
  std::vector<TokenId> token_of;                 // [Vd] the target's ids; empty: the same ids
};

// Requests the tensors of `layer`, whose names begin with `at` ("layers.0.").
HeadLayer gather_head_layer(HeadTensors& tensors, const HeadConfig& config, const std::string& at, std::uint32_t layer);

HeadWeights load_head_weights(backend::Ops& ops, const HeadConfig& config, const model::ModelFiles& files,
                              std::optional<backend::Format> quantize);

}  // namespace quire::speculate
