// GLM-4.5 to 4.7, dots.llm1 and Solar Open: experts by DeepSeek V3's rule beside shared experts; the first layers may
// be dense. A layer of GLM behind the last one, which proposes drafts, is skipped.
#include "core/model/arch/families.h"
#include "core/model/arch/mixture.h"

namespace quire::model {
namespace {

void read_grouped_experts(const JsonFields& fields, const MixtureDefaults& defaults, bool normed, std::uint32_t dense,
                          ModelSpec& spec) {
  MixtureSpec mixture = read_mixture(fields, spec, defaults);
  read_grouped_rule(fields, normed, 1.0, mixture);
  const std::uint32_t shared = shared_width(fields, "n_shared_experts", 1, mixture.expert.width);
  set_experts(mixture, shared, all_but_first(fields, dense, spec.layers.size()), spec);
  name_shared_expert("mlp.shared_experts", spec);
}

void skip_layers_behind(ModelSpec& spec) {
  spec.names.skipped.push_back("model.layers." + std::to_string(spec.layers.size()) + ".*");
}

}  // namespace

ModelSpec read_glm4_moe(const JsonFields& fields) {
  ModelSpec spec = read_model(fields, {.model_type = "glm4_moe", .positions = 131072, .kv_heads = 8, .eps = 1e-5});
  set_rope(fields, {.rotary_fraction = 0.5, .partial = true}, spec);
  const bool biased = read_flag(fields, "attention_bias", false);
  const bool norms = read_flag(fields, "use_qk_norm", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.qkv_bias = biased;
    if (norms) layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm};
  }
  read_grouped_experts(fields, {.num_experts = 128, .top_k = 8, .width = 1408}, true, 1, spec);
  skip_layers_behind(spec);
  return spec;
}

ModelSpec read_dots1(const JsonFields& fields) {
  ModelSpec spec = read_model(fields, {.model_type = "dots1", .positions = 2048, .kv_heads = 32});
  set_rope(fields, {}, spec);
  const std::uint32_t window = read_window(fields, 4096);
  const std::uint64_t full = fields.optional_uint("max_window_layers", 0, (1u << 31) - 1).value_or(62);
  std::vector<bool> sliding;
  for (std::size_t layer = 0; layer < spec.layers.size(); ++layer) sliding.push_back(window != 0 && layer >= full);
  set_windows(fields, read_sliding(fields, spec.layers.size()).value_or(sliding), window, spec);
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm};
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
  }
  read_grouped_experts(fields, {.width = 1408}, false, 0, spec);
  return spec;
}

// It has no MLP but those of experts.
ModelSpec read_solar_open(const JsonFields& fields) {
  FamilyDefaults defaults;
  defaults.model_type = "solar_open";
  defaults.keys.mlp_width = "moe_intermediate_size";
  defaults.positions = 131072;
  defaults.kv_heads = 8;
  defaults.head_dim = 128;
  defaults.eps = 1e-5;
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {.theta = 1e6, .partial = true}, spec);
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) layer.attention.qkv_bias = biased;
  read_grouped_experts(fields, {.num_experts = 128, .top_k = 8, .width = 1280}, true, 0, spec);
  return spec;
}

}  // namespace quire::model
