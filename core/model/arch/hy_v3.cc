// Hunyuan 3 (hy_v3): Qwen3's attention; experts by sigmoid with a bias for choosing, beside a shared one, in all layers
// but the first.
#include "core/model/arch/families.h"
#include "core/model/arch/mixture.h"

namespace quire::model {

ModelSpec read_hy_v3(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "hy_v3";
  defaults.positions = 131072;
  defaults.kv_heads = 8;
  defaults.head_dim = 128;
  defaults.eps = 1e-5;
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {.theta = 11158840.0}, spec);
  refuse_bias(fields, "mlp_bias", spec, "MLP biases");
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm};
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
  }
  MixtureSpec mixture = read_mixture(fields, spec, {.num_experts = 192, .top_k = 8, .width = 1536});
  mixture.rule.score = backend::RouteScore::kSigmoid;
  mixture.rule.normed = true;
  mixture.rule.norm_eps = 1e-20f;
  mixture.rule.scale = static_cast<float>(fields.optional_number("router_scaling_factor", 1e-6, 1e6).value_or(2.826));
  mixture.choice_bias = true;
  const std::uint32_t shared = shared_width(fields, "num_shared_experts", 1, mixture.expert.width);
  const std::vector<bool> usual = all_but_first(fields, 1, spec.layers.size());
  set_experts(mixture, shared, sparse_by_type(fields, usual), spec);
  name_shared_expert("mlp.shared_mlp", spec);
  spec.names.experts.router = "mlp.router.gate";
  spec.names.experts.choice_bias = "mlp.expert_bias";
  spec.names.skipped.push_back("model.layers." + std::to_string(spec.layers.size()) + ".*");
  return spec;
}

}  // namespace quire::model
