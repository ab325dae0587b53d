// The tensors of a quantised checkpoint, joined: codes, scales and zeros of a module become one tensor,
// "MODULE.weight", that reads them (CodedMatrix). Tensors that only say how activations are quantised are left out.
//   GPTQ, AutoRound      .qweight .scales .qzeros .g_idx
//   AWQ                  .qweight .scales .qzeros
//   compressed-tensors   .weight_packed .weight_scale .weight_zero_point .weight_shape .weight_global_scale
//                        .weight_g_idx
//   FP8, ModelOpt        .weight .weight_scale or .weight_scale_inv, .weight_scale_2
//   bitsandbytes         .weight .SCB, or .weight.absmax .weight.quant_map .weight.quant_state.… .weight.nested_…
//   gpt-oss              NAME_blocks NAME_scales become NAME
// Owner   the joined tensors borrow the mapped files.
// Thread  start.
// Fails   never: a matrix with a part that is missing, or of another type or shape, has the reason in Tensor::unread.
//         It may be one of a part of the model that is not served.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/model/quantized/quantization.h"
#include "core/model/source/safetensors.h"

namespace quire::model {

Checkpoint::Tensors join_quantized(Checkpoint::Tensors tensors, const std::optional<Quantization>& quantization);

}  // namespace quire::model
