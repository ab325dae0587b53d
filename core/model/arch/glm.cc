// GLM-4 (glm) and GLM-4-0414 (glm4): RoPE by neighbours of half of a head, gate and up in one tensor.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {
namespace {

ModelSpec read_half_turned(const JsonFields& fields, std::string_view model_type) {
  FamilyDefaults defaults;
  defaults.model_type = model_type;
  defaults.positions = 131072;
  defaults.kv_heads = 2;
  defaults.head_dim = 128;
  defaults.eps = 1.5625e-07;
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {.rotary_fraction = 0.5, .partial = true}, spec);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.interleaved = true;
    layer.attention.qkv_bias = read_flag(fields, "attention_bias", true);
  }
  spec.names.gate_up = "mlp.gate_up_proj";
  return spec;
}

}  // namespace

ModelSpec read_glm(const JsonFields& fields) { return read_half_turned(fields, "glm"); }

// Norms on both sides of attention and MLP.
ModelSpec read_glm4(const JsonFields& fields) {
  ModelSpec spec = read_half_turned(fields, "glm4");
  for (LayerSpec& layer : spec.layers) layer.placement = Placement::kSandwich;
  spec.names.attention_norm = "post_self_attn_layernorm";
  spec.names.mlp_out_norm = "post_mlp_layernorm";
  return spec;
}

}  // namespace quire::model
