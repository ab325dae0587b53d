// OLMo (1B, 7B of 2024): Llama with LayerNorms that have neither scale nor bias; 7B clips q, k and v.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_olmo(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "olmo";
  defaults.kv_heads_of_heads = true;
  defaults.set_layer_norms(kNoKey, /*biases=*/false);
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {}, spec);
  const auto clip = static_cast<float>(fields.optional_number("clip_qkv", 0.0, 1e9).value_or(0.0));
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.norm.weightless = true;
    layer.attention.qkv_clip = clip;
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
  }
  spec.final_norm->weightless = true;
  return spec;
}

}  // namespace quire::model
