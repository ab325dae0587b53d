// OPT: LayerNorms with biases, a plain MLP with relu, embeddings of positions from the third row of their table on.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

ModelSpec read_opt(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "opt";
  defaults.keys.kv_heads = kNoKey;
  defaults.keys.mlp_width = "ffn_dim";
  defaults.kv_heads_of_heads = true;
  defaults.takes_head_dim = false;
  defaults.tied = true;
  defaults.eps_key = kNoKey;
  defaults.eps = 1e-5;
  defaults.norm = backend::NormKind::kLayer;
  defaults.norm_bias = true;
  defaults.activation_key = "activation_function";
  defaults.activation = "relu";
  ModelSpec spec = read_model(fields, defaults);
  for (const char* key : {"do_layer_norm_before", "layer_norm_elementwise_affine"}) {
    if (!read_flag(fields, key, true)) fields.mismatch(key, "expected true");
  }
  if (read_flag(fields, "_remove_final_layer_norm", false)) {
    fields.mismatch("_remove_final_layer_norm", "expected false");
  }
  if (fields.optional_uint("word_embed_proj_dim", 1, 1u << 22).value_or(spec.hidden) != spec.hidden) {
    fields.mismatch("word_embed_proj_dim", "expected hidden_size = " + std::to_string(spec.hidden));
  }
  const bool biased = read_flag(fields, "enable_bias", true);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.rope = AttentionLayer::kNoRope;
    layer.attention.qkv_bias = layer.attention.out_bias = layer.mlp.bias = biased;
    layer.mlp.gated = false;
  }
  spec.position_embedding = PositionEmbedding{.offset = 2};
  TensorNames& names = spec.names;
  names.positions = "embed_positions";
  names.input_norm = "self_attn_layer_norm";
  names.out = "self_attn.out_proj";
  names.mlp_norm = "final_layer_norm";
  names.up = "fc1";
  names.down = "fc2";
  names.final_norm = "final_layer_norm";
  return spec;
}

}  // namespace quire::model
