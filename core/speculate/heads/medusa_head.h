// Medusa heads: head i guesses the token i + 2 behind a row from the target's last state there, as the final norm leaves it.
//   x = state;  for each block: x += silu(x W + b);  logits = x Wout
// Shape   E hidden, V vocabulary; W [E,E], Wout [V,E] of its own or, in one layout, the target's.
// Names   {head}.{block}.linear and {head}.{blocks}, with or without medusa_head. in front; or blocks.{head}.layers.{block} and
//         lm_heads.{head}. How many heads there are the tensors say: published configs are wrong about it.
// Owner   a value that owns what it packed.
// Thread  one, while starting.
// Fails   StartError: every problem of config and tensors at once.
// Source  Medusa (Cai et al. 2024).
#pragma once

#include <memory>
#include <vector>

#include "core/backend/ops.h"
#include "core/model/config.h"
#include "core/model/model_files.h"

namespace quire::speculate {

struct MedusaHead {
  std::vector<std::unique_ptr<backend::Weight>> blocks;
  std::unique_ptr<backend::Weight> output;  // none: the target's
};

// What is wrong with config.json alone.
void expect_medusa_config(const model::ModelFiles& files, const model::Config& target);

std::vector<MedusaHead> load_medusa_heads(backend::Ops& ops, const model::Config& target,
                                          const model::ModelFiles& files, backend::Quantize quantize);

}  // namespace quire::speculate
