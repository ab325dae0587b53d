// A decoder's checkpoint with its head: names begin with "model." and "lm_head."; quantised matrices are joined.
// Shape   a checkpoint saved from the decoder alone lacks "model.": it is added. "transformer." and the like are
//         replaced, and names of a text model inside a model with images shortened.
// Owner   views into ModelFiles, which must outlive the checkpoint.
// Thread  start.
// Fails   StartError: as Checkpoint::open() and join_quantized().
#pragma once

#include "core/model/source/model_files.h"
#include "core/model/source/safetensors.h"

namespace quire::model {

Checkpoint open_decoder(const ModelFiles& files);

}  // namespace quire::model
