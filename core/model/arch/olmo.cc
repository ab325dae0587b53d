// OLMo (1B, 7B of 2024): Llama with LayerNorms that have neither scale nor bias.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_olmo(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "olmo";
  defaults.kv_heads_of_heads = true;
  defaults.eps_key = kNoKey;
  defaults.eps = 1e-5;
  defaults.norm = backend::NormKind::kLayer;
  ModelSpec spec = read_model(fields, defaults);
  if (fields.has("clip_qkv")) {
    fields.refuse("clip_qkv", "is set: q, k and v that are cut to a limit are not supported; OLMo 2 and 3 have none");
  }
  set_rope(fields, {}, spec);
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.norm.weightless = true;
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
  }
  spec.final_norm.weightless = true;
  return spec;
}

}  // namespace quire::model
