// Falcon: attention and a plain MLP side by side behind one LayerNorm or two; q, k and v in one tensor. Falcon-RW has
// ALiBi instead of RoPE, and its MLP behind attention.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {
namespace {

// 40B and 180B (new_decoder_architecture) have kv heads of their own number; 7B has one.
std::uint32_t read_kv_heads(const JsonFields& fields, std::uint32_t num_heads, bool is_new) {
  if (!is_new) return read_flag(fields, "multi_query", true) ? 1 : num_heads;
  const std::uint64_t given = fields.optional_uint("num_kv_heads", 1, num_heads).value_or(num_heads);
  if (num_heads % given != 0) {
    fields.mismatch("num_kv_heads", "expected a divisor of num_attention_heads = " + std::to_string(num_heads));
  }
  return static_cast<std::uint32_t>(given);
}

Placement read_placement(const JsonFields& fields, bool is_new) {
  const std::uint64_t norms = fields.optional_uint("num_ln_in_parallel_attn", 1, 2).value_or(is_new ? 2 : 1);
  if (is_new) return norms == 2 ? Placement::kParallelNorms : Placement::kParallel;
  return read_flag(fields, "parallel_attn", true) ? Placement::kParallel : Placement::kPre;
}

}  // namespace

ModelSpec read_falcon(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "falcon";
  if (fields.has("n_layer")) defaults.keys.layers = "n_layer";
  if (fields.has("n_head")) defaults.keys.heads = "n_head";
  defaults.keys.mlp_width = "ffn_hidden_size";
  defaults.keys.kv_heads = kNoKey;
  defaults.hiddens_of_mlp = 4;
  defaults.kv_heads_of_heads = true;
  defaults.takes_head_dim = false;
  defaults.tied = true;
  defaults.set_layer_norms("layer_norm_epsilon");
  defaults.activation_key = "activation";
  defaults.activation = "gelu";
  ModelSpec spec = read_model(fields, defaults);
  const bool has_alibi = read_flag(fields, "alibi", false);
  if (!has_alibi) set_rope(fields, {}, spec);
  const bool is_new = read_flag(fields, "new_decoder_architecture", false);
  const Placement placement = read_placement(fields, is_new);
  const bool biased = read_flag(fields, "bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.placement = placement;
    layer.attention.num_kv_heads = read_kv_heads(fields, layer.attention.num_heads, is_new);
    layer.attention.qkv_bias = layer.attention.out_bias = layer.mlp.bias = biased;
    layer.mlp.gated = false;
    if (!has_alibi) continue;
    layer.attention.rope = AttentionLayer::kNoRope;
    layer.attention.alibi = AlibiSpec{.in_bf16 = true};
  }
  TensorNames& names = spec.names;
  names.embedding = "word_embeddings";
  names.layers = "h";
  if (placement == Placement::kParallelNorms) {
    names.input_norm = "ln_attn";
    names.mlp_norm = "ln_mlp";
  }
  names.qkv = "self_attention.query_key_value";
  names.qkv_by_kv_head = true;
  names.out = "self_attention.dense";
  names.up = "mlp.dense_h_to_4h";
  names.down = "mlp.dense_4h_to_h";
  names.final_norm = "ln_f";
  return spec;
}

}  // namespace quire::model
