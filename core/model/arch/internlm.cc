// InternLM 3: Llama with biases under names of its own.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

// transformers writes attention_bias and mlp_bias; the hub has qkv_bias and bias. q, k, v and out have one flag.
ModelSpec read_internlm3(const JsonFields& fields) {
  ModelSpec spec =
      read_model(fields, {.model_type = "internlm3", .positions = 32768, .kv_heads = 2, .head_dim = 128, .eps = 1e-5});
  set_rope(fields, {}, spec);
  const bool qkv = read_flag(fields, fields.has("qkv_bias") ? "qkv_bias" : "attention_bias", false);
  const bool others = read_flag(fields, fields.has("bias") ? "bias" : "mlp_bias", false);
  if (qkv != others) {
    fields.refuse("qkv_bias", "and bias differ; expected both true or both false, as transformers does");
  }
  for (LayerSpec& layer : spec.layers) {
    layer.attention.qkv_bias = layer.attention.out_bias = layer.mlp.bias = qkv;
  }
  return spec;
}

}  // namespace quire::model
