// Seed-OSS: Llama with biases of q, k and v.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_seed_oss(const JsonFields& fields) {
  ModelSpec spec = read_model(fields, {.model_type = "seed_oss", .positions = 524288, .kv_heads = 8, .head_dim = 128});
  set_rope(fields, {}, spec);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.qkv_bias = read_flag(fields, "attention_bias", true);
    layer.attention.out_bias = read_flag(fields, "attention_out_bias", false);
    layer.mlp.bias = read_flag(fields, "mlp_bias", false);
  }
  return spec;
}

}  // namespace quire::model
