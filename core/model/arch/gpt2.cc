// GPT-2 and GPT-BigCode (SantaCoder, StarCoder): LayerNorms, a plain MLP, embeddings of positions, q, k and v in one
// tensor. GPT-2 stores its matrices as [inputs, outputs]; GPT-BigCode has one kv head.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {
namespace {

ModelSpec read_gpt(const JsonFields& fields, std::string_view model_type) {
  FamilyDefaults defaults;
  defaults.model_type = model_type;
  defaults.keys = {"n_embd", "n_layer", "n_head", kNoKey, "n_inner", "n_positions"};
  defaults.positions = 1024;
  defaults.hiddens_of_mlp = 4;
  defaults.kv_heads_of_heads = true;
  defaults.takes_head_dim = false;
  defaults.tied = true;
  defaults.set_layer_norms("layer_norm_epsilon");
  defaults.activation_key = "activation_function";
  defaults.activation = "gelu_new";
  ModelSpec spec = read_model(fields, defaults);
  if (read_flag(fields, "add_cross_attention", false)) {
    fields.mismatch("add_cross_attention", "expected false: there is no encoder");
  }
  const bool scaled = read_flag(fields, "scale_attn_weights", true);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.rope = AttentionLayer::kNoRope;
    layer.attention.qkv_bias = layer.attention.out_bias = layer.mlp.bias = true;
    layer.mlp.gated = false;
    if (!scaled) layer.attention.scale = 1.0f;
  }
  spec.position_embedding = PositionEmbedding{};
  TensorNames& names = spec.names;
  names.embedding = "wte";
  names.positions = "wpe";
  names.layers = "h";
  names.input_norm = "ln_1";
  names.qkv = "attn.c_attn";
  names.out = "attn.c_proj";
  names.mlp_norm = "ln_2";
  names.up = "mlp.c_fc";
  names.down = "mlp.c_proj";
  names.final_norm = "ln_f";
  names.skipped = {"*.attn.bias", "*.attn.masked_bias"};
  return spec;
}

}  // namespace

ModelSpec read_gpt2(const JsonFields& fields) {
  ModelSpec spec = read_gpt(fields, "gpt2");
  spec.names.transposed = true;
  if (!read_flag(fields, "scale_attn_by_inverse_layer_idx", false)) return spec;
  float layers = 0.0f;
  for (LayerSpec& layer : spec.layers) layer.attention.scale /= (layers += 1.0f);
  return spec;
}

ModelSpec read_gpt_bigcode(const JsonFields& fields) {
  ModelSpec spec = read_gpt(fields, "gpt_bigcode");
  spec.names.qkv_by_kv_head = true;
  if (!read_flag(fields, "multi_query", true)) return spec;
  for (LayerSpec& layer : spec.layers) layer.attention.num_kv_heads = 1;
  return spec;
}

}  // namespace quire::model
