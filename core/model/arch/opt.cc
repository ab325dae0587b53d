// OPT: LayerNorms with biases, a plain MLP with relu, embeddings of positions from the third row of their table on. The
// 350M has embeddings half as wide as its layers, and LayerNorms of the sums.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {
namespace {

void set_affine(bool scaled, NormSpec& norm) {
  norm.weightless = !scaled;
  norm.bias = scaled;
}

}  // namespace

ModelSpec read_opt(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "opt";
  defaults.keys.kv_heads = kNoKey;
  defaults.keys.mlp_width = "ffn_dim";
  defaults.kv_heads_of_heads = true;
  defaults.takes_head_dim = false;
  defaults.tied = true;
  defaults.set_layer_norms(kNoKey);
  defaults.activation_key = "activation_function";
  defaults.activation = "relu";
  ModelSpec spec = read_model(fields, defaults);
  const bool norms_before = read_flag(fields, "do_layer_norm_before", true);
  const bool scaled_norms = read_flag(fields, "layer_norm_elementwise_affine", true);
  if (!norms_before || read_flag(fields, "_remove_final_layer_norm", false)) spec.final_norm.reset();
  if (spec.final_norm) set_affine(scaled_norms, *spec.final_norm);
  const auto embedding = fields.optional_uint("word_embed_proj_dim", 1, kMaxWidth);
  spec.embedding = static_cast<std::uint32_t>(embedding.value_or(spec.hidden));
  const bool biased = read_flag(fields, "enable_bias", true);
  for (LayerSpec& layer : spec.layers) {
    if (!norms_before) layer.placement = Placement::kPostSum;
    set_affine(scaled_norms, layer.norm);
    layer.attention.rope = AttentionLayer::kNoRope;
    layer.attention.qkv_bias = layer.attention.out_bias = layer.mlp.bias = biased;
    layer.mlp.gated = false;
  }
  spec.position_embedding = PositionEmbedding{.offset = 2};
  TensorNames& names = spec.names;
  names.positions = "embed_positions";
  names.input_norm = "self_attn_layer_norm";
  names.out = "self_attn.out_proj";
  names.attention_norm = "self_attn_layer_norm";
  names.mlp_norm = names.mlp_out_norm = "final_layer_norm";
  names.up = "fc1";
  names.down = "fc2";
  names.final_norm = "final_layer_norm";
  return spec;
}

}  // namespace quire::model
