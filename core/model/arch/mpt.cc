// MPT: LayerNorms without biases, ALiBi, a plain MLP; q, k and v in one tensor, which 7B StoryWriter and 30B clip.
#include <cmath>

#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {
namespace {

void refuse_other_attention(const JsonFields& attention) {
  for (const char* key : {"prefix_lm", "qk_ln", "attn_uses_sequence_id", "rope"}) {
    if (read_flag(attention, key, false)) attention.mismatch(key, "expected false");
  }
  if (!read_flag(attention, "alibi", true)) {
    attention.mismatch("alibi", "expected true: models of this family without it are not supported");
  }
  if (attention.optional_string("attn_type").value_or("multihead_attention") != "multihead_attention") {
    attention.mismatch("attn_type", "expected multihead_attention");
  }
}

void read_attention_config(const JsonFields& fields, AttentionLayer& layer) {
  layer.alibi = AlibiSpec{};
  const auto attention = fields.optional_object("attn_config");
  if (!attention) return;
  refuse_other_attention(*attention);
  layer.alibi->max = attention->optional_number("alibi_bias_max", 1.0, 1e6).value_or(8.0);
  layer.qkv_clip = static_cast<float>(attention->optional_number("clip_qkv", 0.0, 1e9).value_or(0.0));
  const auto scale = attention->optional_number("softmax_scale", 1e-9, 1e9);
  if (scale) layer.scale = static_cast<float>(*scale);
}

}  // namespace

ModelSpec read_mpt(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "mpt";
  defaults.keys = {"d_model", "n_layers", "n_heads", kNoKey, kNoKey, "max_seq_len"};
  defaults.hiddens_of_mlp = 4;
  defaults.kv_heads_of_heads = true;
  defaults.takes_head_dim = false;
  defaults.tied = true;
  defaults.set_layer_norms("layer_norm_epsilon", /*biases=*/false);
  defaults.activation_key = kNoKey;
  defaults.activation = "gelu";
  ModelSpec spec = read_model(fields, defaults);
  if (fields.optional_number("expansion_ratio", 0.0, 1e6).value_or(4.0) != 4.0) {
    fields.mismatch("expansion_ratio", "expected 4");
  }
  if (!read_flag(fields, "no_bias", true)) fields.mismatch("no_bias", "expected true");
  if (fields.has("logit_scale")) fields.mismatch("logit_scale", "expected null");
  AttentionLayer& first = spec.layers.front().attention;
  first.rope = AttentionLayer::kNoRope;
  read_attention_config(fields, first);
  const AttentionLayer attention = first;
  for (LayerSpec& layer : spec.layers) {
    layer.attention = attention;
    layer.mlp.gated = false;
  }
  TensorNames& names = spec.names;
  names.embedding = "wte";
  names.layers = "blocks";
  names.input_norm = "norm_1";
  names.qkv = "attn.Wqkv";
  names.out = "attn.out_proj";
  names.mlp_norm = "norm_2";
  names.up = "ffn.up_proj";
  names.down = "ffn.down_proj";
  names.final_norm = "norm_f";
  return spec;
}

}  // namespace quire::model
