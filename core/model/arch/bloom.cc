// BLOOM: LayerNorms, one of them over the embeddings, biases, ALiBi, a plain MLP; q, k and v in one tensor head by
// head.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_bloom(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "bloom";
  defaults.keys = {"hidden_size", "n_layer", "n_head", kNoKey, kNoKey, "seq_length"};
  if (fields.has("n_embed")) defaults.keys.hidden = "n_embed";
  if (!fields.has("n_layer")) defaults.keys.layers = "num_hidden_layers";
  if (!fields.has("n_head")) defaults.keys.heads = "num_attention_heads";
  defaults.hiddens_of_mlp = 4;
  defaults.kv_heads_of_heads = true;
  defaults.takes_head_dim = false;
  defaults.tied = true;
  defaults.set_layer_norms("layer_norm_epsilon");
  defaults.activation_key = kNoKey;
  defaults.activation = "gelu_pytorch_tanh";
  ModelSpec spec = read_model(fields, defaults);
  if (read_flag(fields, "apply_residual_connection_post_layernorm", false)) {
    fields.mismatch("apply_residual_connection_post_layernorm", "expected false");
  }
  for (LayerSpec& layer : spec.layers) {
    layer.attention.rope = AttentionLayer::kNoRope;
    layer.attention.alibi = AlibiSpec{};
    layer.attention.qkv_bias = layer.attention.out_bias = layer.mlp.bias = true;
    layer.mlp.gated = false;
  }
  spec.embedding_norm = spec.final_norm;
  TensorNames& names = spec.names;
  names.embedding = "word_embeddings";
  names.embedding_norm = "word_embeddings_layernorm";
  names.layers = "h";
  names.qkv = "self_attention.query_key_value";
  names.qkv_by_kv_head = true;
  names.out = "self_attention.dense";
  names.up = "mlp.dense_h_to_4h";
  names.down = "mlp.dense_4h_to_h";
  names.final_norm = "ln_f";
  return spec;
}

}  // namespace quire::model
