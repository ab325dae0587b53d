// Weights of Hydra heads. Head i predicts the token i + 2 after a row, from the target's state there and the tokens
// between.
//   x = [state | embed of the i + 1 tokens];  y = x R + c + silu(x W + b);  for each block: y += silu(y B + d);
//   logits = y Wout + e
// Hydra++ has a layer of its own over the states in front: draft_head.h, prefix.
// Shape   E hidden, V vocabulary; R, W [E, (i+2)E], B [E,E], Wout [V,E].
// Names   hydra_mlp.{head}.{block}.linear, for the first block also .res_connection, and hydra_lm_head.{head}. With a
//         prefix (prefix_embeding_layer.*) a dropout precedes each, so blocks are 1, 3, 5, … and the output is .1.
// Blocks  after the first share one weight as published, stored again under each number. It is packed once, and a file
//         may leave out the repeats.
// Owner   a value that owns its packed weights.
// Thread  one, at startup.
// Fails   StartError with every problem of config and tensors at once. Heads without tokens (Medusa's) and the two
//         layouts whose heads are one layer over tokens are rejected by name.
// Source  Hydra (Ankner et al. 2024), and the tensor names of its files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/backend/ops.h"
#include "core/model/arch/config.h"
#include "core/model/source/model_files.h"
#include "core/speculate/heads/head_config.h"
#include "core/speculate/heads/head_weights.h"

namespace quire::speculate {

struct HydraHead {
  std::unique_ptr<backend::Weight> residual;  // R and c
  std::unique_ptr<backend::Weight> linear;    // W and b
  std::vector<std::unique_ptr<backend::Weight>> blocks;
  std::vector<std::uint32_t> turns;         // index in `blocks` of each block, in order
  std::unique_ptr<backend::Weight> output;  // Wout and e
};

struct HydraHeads {
  // The state that the heads read: the input of this layer; none: the last state, after the norm.
  std::optional<std::uint32_t> boundary;
  std::vector<HydraHead> heads;
  std::optional<HeadConfig> prefix;  // none: the heads read the state itself
  HeadWeights prefix_weights;
};

// Config of the prefix layer, from the heads' config.json alone; none if they have none.
std::optional<HeadConfig> load_hydra_prefix_config(const model::ModelFiles& files, const model::ModelSpec& target);

HydraHeads load_hydra_heads(backend::Ops& ops, const model::ModelSpec& target, const model::ModelFiles& files,
                            std::optional<backend::Format> quantize);

}  // namespace quire::speculate
