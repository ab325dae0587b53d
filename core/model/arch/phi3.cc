// Phi-3, 3.5 and 4: Llama with q|k|v and gate|up in one tensor each, longrope, and heads that turn in part.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_phi3(const JsonFields& fields) {
  ModelSpec spec =
      read_model(fields, {.model_type = "phi3", .positions = 4096, .kv_heads_of_heads = true, .eps = 1e-5});
  set_rope(fields, {.partial = true, .longrope = true, .original_positions = 4096}, spec);
  for (LayerSpec& layer : spec.layers) layer.attention.window = read_window(fields, 0);
  spec.names.qkv = "self_attn.qkv_proj";
  spec.names.gate_up = "mlp.gate_up_proj";
  return spec;
}

}  // namespace quire::model
