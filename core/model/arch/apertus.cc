// Apertus: Llama with norms of the heads of q and k, and a plain MLP with xIELU, whose numbers each layer has.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_apertus(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "apertus";
  defaults.positions = 65536;
  defaults.kv_heads_of_heads = true;
  defaults.eps = 1e-5;
  defaults.activation_key = kNoKey;
  if (fields.optional_string("hidden_act").value_or("xielu") != "xielu") {
    fields.mismatch("hidden_act", "expected xielu");
  }
  ModelSpec spec = read_model(fields, defaults);
  constexpr double kTheta = 12e6;
  if (fields.has("rope_parameters") || fields.has("rope_scaling")) {
    set_rope(fields, {.theta = kTheta}, spec);
  } else {
    RopeConfig& rope = spec.ropes.emplace_back();
    rope.kind = RopeKind::kLlama3;
    rope.theta = kTheta;
    rope.factor = 8.0;
    rope.original_positions = 8192;
  }
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm};
    layer.mlp.activation = backend::Activation::kXielu;
    layer.mlp.gated = false;
  }
  spec.names.input_norm = "attention_layernorm";
  spec.names.mlp_norm = "feedforward_layernorm";
  return spec;
}

}  // namespace quire::model
