// StarCoder2: LayerNorms with biases, a plain MLP with a tanh gelu.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_starcoder2(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "starcoder2";
  defaults.positions = 4096;
  defaults.kv_heads = 2;
  defaults.tied = true;
  defaults.set_layer_norms("norm_epsilon");
  defaults.activation = "gelu_pytorch_tanh";
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {}, spec);
  const bool biased = read_flag(fields, "use_bias", true);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.window = read_window(fields, 0);
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
    layer.mlp.gated = false;
    layer.mlp.bias = biased;
  }
  spec.names.up = "mlp.c_fc";
  spec.names.down = "mlp.c_proj";
  return spec;
}

}  // namespace quire::model
