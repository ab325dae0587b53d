// Phi 1, 1.5 and 2: attention and a plain MLP side by side behind one LayerNorm, RoPE of half of a head, biases
// everywhere.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_phi(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "phi";
  defaults.kv_heads_of_heads = true;
  defaults.takes_head_dim = false;
  defaults.set_layer_norms("layer_norm_eps");
  defaults.activation = "gelu_new";
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {.rotary_fraction = 0.5, .partial = true}, spec);
  const bool norms_heads = read_flag(fields, "qk_layernorm", false);
  for (LayerSpec& layer : spec.layers) {
    layer.placement = Placement::kParallel;
    layer.attention.qkv_bias = layer.attention.out_bias = layer.mlp.bias = true;
    layer.mlp.gated = false;
    if (norms_heads) layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm};
  }
  spec.head_bias = true;
  spec.names.q_norm = "self_attn.q_layernorm";
  spec.names.k_norm = "self_attn.k_layernorm";
  spec.names.out = "self_attn.dense";
  spec.names.up = "mlp.fc1";
  spec.names.down = "mlp.fc2";
  spec.names.final_norm = "final_layernorm";
  return spec;
}

}  // namespace quire::model
