// nanochat: norms without scales, also of the embeddings and, after RoPE, of the heads of q and k; heads that turn the
// other way; a plain MLP with squared relu.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_nanochat(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "nanochat";
  defaults.kv_heads_of_heads = true;
  defaults.activation = "relu2";
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {}, spec);
  spec.ropes.front().negated = true;
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.norm.weightless = true;
    layer.mlp.gated = false;
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm};
    layer.attention.norms_after_rope = true;
  }
  spec.final_norm->weightless = true;
  spec.embedding_norm = spec.final_norm;
  const double cap = fields.optional_number("final_logit_softcapping", 0.0, 1e9).value_or(15.0);
  spec.logit_softcap = fields.is_null("final_logit_softcapping") ? 0.0f : static_cast<float>(cap);
  spec.names.up = "mlp.fc1";
  spec.names.down = "mlp.fc2";
  return spec;
}

}  // namespace quire::model
