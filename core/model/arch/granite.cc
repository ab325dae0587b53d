// Granite 3 (dense): Llama with four multipliers.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_granite(const JsonFields& fields) {
  ModelSpec spec = read_model(fields, {.model_type = "granite", .positions = 2048, .kv_heads_of_heads = true});
  set_rope(fields, {}, spec);
  const auto number = [&](std::string_view key) {
    return static_cast<float>(fields.optional_number(key, 1e-6, 1e6).value_or(1.0));
  };
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.scale = number("attention_multiplier");
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
    layer.mlp.bias = read_flag(fields, "mlp_bias", false);
    layer.residual_scale = number("residual_multiplier");
  }
  spec.embedding_scale = number("embedding_multiplier");
  spec.logit_scale = 1.0f / number("logits_scaling");
  return spec;
}

}  // namespace quire::model
