// Helium: Llama with RoPE by neighbours.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_helium(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "helium";
  defaults.positions = 4096;
  defaults.kv_heads = 20;
  defaults.head_dim = 128;
  defaults.eps = 1e-8;
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {.theta = 1e5}, spec);
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.interleaved = true;
    layer.attention.qkv_bias = biased;
    layer.mlp.bias = read_flag(fields, "mlp_bias", false);
  }
  return spec;
}

}  // namespace quire::model
