// StableLM 2: LayerNorms with biases, a quarter of a head turns, a LayerNorm for each head of q and k.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_stablelm(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "stablelm";
  defaults.positions = 4096;
  defaults.kv_heads_of_heads = true;
  defaults.takes_head_dim = false;
  defaults.set_layer_norms("layer_norm_eps");
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {.rotary_fraction = 0.25, .partial = true}, spec);
  const bool parallel = read_flag(fields, "use_parallel_residual", false);
  const bool norms_heads = read_flag(fields, "qk_layernorm", false);
  for (LayerSpec& layer : spec.layers) {
    if (parallel) layer.placement = Placement::kParallel;
    layer.attention.qkv_bias = read_flag(fields, "use_qkv_bias", false);
    if (!norms_heads) continue;
    const NormSpec norm{backend::NormKind::kLayer, layer.norm.eps, /*bias=*/false};
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{norm, HeadNormSpec::Over::kEachHead};
  }
  spec.names.q_norm = "self_attn.q_layernorm.norms.{}";
  spec.names.k_norm = "self_attn.k_layernorm.norms.{}";
  return spec;
}

}  // namespace quire::model
