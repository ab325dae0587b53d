// Scales that a quantised checkpoint stores for K and V of a cache in FP8: a code stands for its number times the
// scale.
// Shape   one number for a layer's K, one for its V. Scales for each head are left out, and said in the log.
// Thread  start.
// Fails   StartError naming the tensor: a scale that is not a finite number, or below the smallest normal one.
// Source  compressed-tensors 0.20, ModelOpt, AutoFP8: the names that they write.
#pragma once

#include <string_view>

#include "core/model/quantized/quantization.h"
#include "core/model/source/safetensors.h"

namespace quire::model {

struct StoredKvScales {
  float k = 1.0f;
  float v = 1.0f;
};

// True for "….k_scale" and "….v_scale".
bool is_kv_scale(std::string_view name);
// Tensors with one name for these scales: "….self_attn.k_proj.k_scale" becomes "….self_attn.k_scale".
Checkpoint::Tensors with_kv_scales_named(Checkpoint::Tensors tensors, const Quantization& quantization);
// Scales of the layer whose tensor names begin with `layer`, as in "model.layers.3."; a missing one is 1.
StoredKvScales kv_scales_of(const Checkpoint& checkpoint, std::string_view layer);

}  // namespace quire::model
