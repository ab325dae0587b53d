// The tensors that a model would have, by its config.json alone: for plans where no weights are.
// Shape   names and shapes of the spec's table. Matrices and vectors have the config's dtype, bf16 if it has none;
//         linear layers, or experts alone, are in the format of its quantization_config. There is no data:
//         Tensor::bytes() counts.
// Thread  start.
// Fails   StartError: a dtype that is not read.
#pragma once

#include "core/model/source/model_files.h"
#include "core/model/source/safetensors.h"
#include "core/model/spec.h"

namespace quire::app {

// False: a config.json and nothing that is known as weights, in any format.
bool has_weights(const model::ModelFiles& files);

model::Checkpoint planned_checkpoint(const model::ModelSpec& spec, const model::ModelFiles& files);

}  // namespace quire::app
