// Weights of Medusa heads. Head i predicts the token i + 2 after a row, from the target's last state there, after the
// final norm.
//   x = state;  for each block: x += silu(x W + b);  logits = x Wout
// Shape   E hidden, V vocabulary, Vd the heads' own, at most V; W [E,E], Wout [Vd,E] of its own or the target's.
// Names   {head}.{block}.linear and {head}.{blocks}, in a file of their own or, behind medusa_head., in the whole
//         model's (head_tensors.h); or vLLM's blocks.{head}.layers.{block} and lm_heads.{head}, with a token_map if Vd
//         is less than V. The tensors decide the number of heads: published configs are wrong about it.
// Owner   a value that owns its packed weights.
// Thread  one, at startup.
// Fails   StartError with every problem of config and tensors at once.
// Source  Medusa (Cai et al. 2024).
#pragma once

#include <memory>
#include <vector>

#include "core/backend/ops.h"
#include "core/model/arch/config.h"
#include "core/model/source/model_files.h"

namespace quire::speculate {

struct MedusaHead {
  std::vector<std::unique_ptr<backend::Weight>> blocks;
  std::unique_ptr<backend::Weight> output;  // null: the target's
};

struct MedusaHeads {
  std::vector<MedusaHead> heads;  // by depth
  std::vector<TokenId> token_of;  // [Vd] the target's ids; empty: the same ids
};

// Checks config.json alone; throws StartError.
void expect_medusa_config(const model::ModelFiles& files, const model::ModelSpec& target);

MedusaHeads load_medusa_heads(backend::Ops& ops, const model::ModelSpec& target, const model::ModelFiles& files,
                              std::optional<backend::Format> quantize);

}  // namespace quire::speculate
