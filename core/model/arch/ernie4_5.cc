// ERNIE 4.5 (dense): Llama with RoPE by neighbours.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_ernie4_5(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "ernie4_5";
  defaults.positions = 131072;
  defaults.kv_heads = 2;
  defaults.head_dim = 128;
  defaults.tied = true;
  defaults.eps = 1e-5;
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {.theta = 5e5}, spec);
  const bool biased = read_flag(fields, "use_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.interleaved = true;
    layer.attention.qkv_bias = layer.attention.out_bias = layer.mlp.bias = biased;
  }
  return spec;
}

}  // namespace quire::model
