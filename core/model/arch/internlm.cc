// InternLM 2: Llama with q, k and v in one tensor, by kv head, and names of its own. InternLM 3: Llama with biases
// under names of its own.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_internlm2(const JsonFields& fields) {
  ModelSpec spec = read_model(fields, {.model_type = "internlm2", .positions = 2048, .kv_heads_of_heads = true});
  set_rope(fields, {}, spec);
  const bool biased = read_flag(fields, "bias", true);
  for (LayerSpec& layer : spec.layers) layer.attention.qkv_bias = layer.attention.out_bias = biased;
  TensorNames& names = spec.names;
  names.embedding = "tok_embeddings";
  names.input_norm = "attention_norm";
  names.qkv = "attention.wqkv";
  names.qkv_by_kv_head = true;
  names.out = "attention.wo";
  names.mlp_norm = "ffn_norm";
  names.gate = "feed_forward.w1";
  names.up = "feed_forward.w3";
  names.down = "feed_forward.w2";
  names.head = "output";
  return spec;
}

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
