// Phi-3.5-MoE: LayerNorm with biases, two experts by sparsemixer, longrope with a factor on cos and sin of its own for
// each table.
#include "core/model/arch/families.h"
#include "core/model/arch/mixture.h"

namespace quire::model {

ModelSpec read_phimoe(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "phimoe";
  defaults.positions = 131072;
  defaults.kv_heads = 8;
  defaults.set_layer_norms("rms_norm_eps");
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {.theta = 1e6, .longrope = true, .original_positions = 4096}, spec);
  const std::uint32_t window = read_window(fields, 0);
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.window = window;
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
  }
  spec.head_bias = read_flag(fields, "lm_head_bias", false);
  MixtureSpec mixture =
      read_mixture(fields, spec, {.num_experts = 16, .top_k = 2, .width = 6400, .width_key = "intermediate_size"});
  if (mixture.rule.top_k != 2) fields.mismatch("num_experts_per_tok", "expected 2: sparsemixer chooses two experts");
  mixture.rule.score = backend::RouteScore::kSparsemixer;
  const double jitter = fields.optional_number("router_jitter_noise", 0.0, 1.0).value_or(0.01);
  mixture.rule.margin = static_cast<float>(2.0 * jitter);
  set_experts(mixture, 0, std::vector<bool>(spec.layers.size(), true), spec);
  name_numbered_experts("block_sparse_moe", spec);
  return spec;
}

}  // namespace quire::model
