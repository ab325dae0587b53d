// Checks of a checkpoint's tensors against a ModelSpec's table, before anything is packed.
// Thread  one, at start.
// Fails   StartError: every missing, unexpected, wrongly shaped or unreadable tensor at once (the first 20 in full).
#pragma once

#include "core/model/source/safetensors.h"
#include "core/model/spec.h"
#include "core/model/tensor_table.h"

namespace quire::model {

// Throws if checkpoint and spec do not match. Reads headers only; a tied head's data too, if the file has one.
void check_weights(const ModelSpec& spec, const Checkpoint& checkpoint);

// The part of it that needs no tensor data.
void check_headers(const ModelSpec& spec, const TensorTable& table, const Checkpoint& checkpoint);

// The spec with what the checkpoint decides: its own output matrix, if config.json leaves open that it is tied, and how
// it stores experts.
ModelSpec fitted(const ModelSpec& spec, const Checkpoint& checkpoint);

}  // namespace quire::model
