// Mixtral: Mistral with experts, whose weights are normed softmaxes. MiniMax-M2: sigmoids, a bias for choosing, norms
// of all of q and k, and heads that turn in part.
#include "core/model/arch/families.h"
#include "core/model/arch/mixture.h"

namespace quire::model {

ModelSpec read_mixtral(const JsonFields& fields) {
  ModelSpec spec = read_model(fields, {.model_type = "mixtral", .positions = 131072, .kv_heads = 8, .eps = 1e-5});
  set_rope(fields, {.theta = 1e6}, spec);
  const std::uint32_t window = read_window(fields, 0);
  for (LayerSpec& layer : spec.layers) layer.attention.window = window;
  MixtureSpec mixture =
      read_mixture(fields, spec, {.num_experts = 8, .top_k = 2, .width = 14336, .width_key = "intermediate_size"});
  mixture.rule.normed = true;
  set_experts(mixture, 0, std::vector<bool>(spec.layers.size(), true), spec);
  name_numbered_experts("block_sparse_moe", spec);
  return spec;
}

ModelSpec read_minimax_m2(const JsonFields& fields) {
  ModelSpec spec = read_model(
      fields, {.model_type = "minimax_m2", .positions = 196608, .kv_heads = 8, .head_dim = 128, .eps = 1e-6});
  const double head_dim = spec.layers.front().attention.head_dim;
  const double turned = fields.optional_number("rotary_dim", 2.0, head_dim).value_or(head_dim / 2.0);
  set_rope(fields, {.theta = 5e6, .rotary_fraction = turned / head_dim, .partial = true}, spec);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm, HeadNormSpec::Over::kRow};
  }
  MixtureSpec mixture =
      read_mixture(fields, spec, {.num_experts = 256, .top_k = 8, .width = 1536, .width_key = "intermediate_size"});
  mixture.rule.score = backend::RouteScore::kSigmoid;
  mixture.rule.normed = true;
  mixture.choice_bias = true;
  set_experts(mixture, 0, std::vector<bool>(spec.layers.size(), true), spec);
  name_numbered_experts("block_sparse_moe", spec);
  spec.names.experts.choice_bias = "block_sparse_moe.e_score_correction_bias";
  spec.names.skipped.emplace_back("model.mtp.*");
  return spec;
}

}  // namespace quire::model
