// Hydra heads: head i guesses the token i + 2 behind a row from the target's state there and the tokens between.
//   x = [state | embed of the i + 1 tokens];  y = x R + c + silu(x W + b);  for each block: y += silu(y B + d);
//   logits = y Wout + e
// In front of them, in Hydra++, a layer of its own over the states: draft_head.h, a prefix.
// Shape   E hidden, V vocabulary; R, W [E, (i+2)E], B [E,E], Wout [V,E].
// Names   hydra_mlp.{head}.{block}.linear, of the first block also .res_connection, and hydra_lm_head.{head}. With a prefix, whose
//         tensors are prefix_embeding_layer.*, a dropout stands before each: blocks are 1, 3, 5, … and the output .1.
// Blocks  behind the first are one as published, written again under each number: it is kept once, and a file may leave the
//         others out.
// Owner   a value that owns what it packed.
// Thread  one, while starting.
// Fails   StartError: every problem of config and tensors at once. Heads that see no tokens (Medusa's), and the two layouts whose
//         heads are one layer over tokens, are refused by name.
// Source  Hydra (Ankner et al. 2024), and the names their files have.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/backend/ops.h"
#include "core/model/config.h"
#include "core/model/model_files.h"
#include "core/speculate/heads/head_config.h"
#include "core/speculate/heads/head_weights.h"

namespace quire::speculate {

struct HydraHead {
  std::unique_ptr<backend::Weight> residual;  // R and c
  std::unique_ptr<backend::Weight> linear;    // W and b
  std::vector<std::unique_ptr<backend::Weight>> blocks;
  std::vector<std::uint32_t> turns;         // which of the blocks, one after another
  std::unique_ptr<backend::Weight> output;  // Wout and e
};

struct HydraHeads {
  // Which state they read: the residual stream before this layer; none: the last, behind the norm.
  std::optional<std::uint32_t> boundary;
  std::vector<HydraHead> heads;
  std::optional<HeadConfig> prefix;  // none: they read the state itself
  HeadWeights prefix_weights;
};

// Of the heads' config alone: what its layer in front is, if there is one.
std::optional<HeadConfig> load_hydra_prefix_config(const model::ModelFiles& files, const model::Config& target);

HydraHeads load_hydra_heads(backend::Ops& ops, const model::Config& target, const model::ModelFiles& files,
                            backend::Quantize quantize);

}  // namespace quire::speculate
