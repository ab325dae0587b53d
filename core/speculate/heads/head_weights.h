// A draft head's tensors, checked against its config and packed for a backend.
// Shape   E hidden, S width of the target's states, W input of the first layer: E, or 2E in EAGLE-3. Vd draft vocabulary.
// Names   layers.0. and midlayer. are one, and `model.` in front means nothing.
// Owner   HeadWeights owns what it packed; nothing points into the files afterwards.
// Thread  one, while starting.
// Fails   StartError: every missing, unexpected, wrongly shaped or unreadable tensor at once, before anything is packed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/backend/ops.h"
#include "core/base/ids.h"
#include "core/model/model_files.h"
#include "core/speculate/heads/head_config.h"
#include "core/speculate/heads/head_tensors.h"

namespace quire::speculate {

struct HeadLayer {
  std::unique_ptr<backend::Vector>
      input_norm;  // [E]; of the embedding alone in EAGLE-3's first layer; none in EAGLE-1's
  std::unique_ptr<backend::Vector> feature_norm;  // [E] EAGLE-3's first layer
  std::unique_ptr<backend::Weight> qkv;           // [(H+2G)·D, W]
  std::unique_ptr<backend::Vector> q_norm;        // [D] or none
  std::unique_ptr<backend::Vector> k_norm;
  std::unique_ptr<backend::Weight> out;        // [E, H·D]
  std::unique_ptr<backend::Vector> post_norm;  // [E]
  std::unique_ptr<backend::Weight> gate_up;    // [2F, E]
  std::unique_ptr<backend::Weight> down;       // [E, F]
};

struct HeadWeights {
  std::unique_ptr<backend::Vector> states_norm;               // [S] or none
  std::vector<std::unique_ptr<backend::Vector>> state_norms;  // of each of the states by itself, or none
  std::unique_ptr<backend::Weight>
      fc;  // EAGLE-3 [E, S]; EAGLE-1 [E, 2E], columns embedding | feature; none in a prefix or of the last state
  std::unique_ptr<backend::Weight> embed;  // [V, E]; none: the target's
  std::vector<HeadLayer> layers;
  std::unique_ptr<backend::Vector> norm;         // [E], times the logits' scale; none in EAGLE-1
  std::unique_ptr<backend::Vector> output_norm;  // the same unscaled, where the next feature passes it, too
  std::unique_ptr<backend::Weight> head;         // [Vd, E]; none: the target's
  std::vector<TokenId> token_of;                 // [Vd] the target's ids; empty: the same
};

// The tensors of `layer`, named from `at` on ("layers.0."), of a head of this config.
HeadLayer gather_head_layer(HeadTensors& tensors, const HeadConfig& config, const std::string& at, std::uint32_t layer);

HeadWeights load_head_weights(backend::Ops& ops, const HeadConfig& config, const model::ModelFiles& files,
                              backend::Quantize quantize);

}  // namespace quire::speculate
