// EXAONE 4: norms after attention and MLP, and of each head of q and k. Where layers slide, the full ones have no
// positions. EXAONE MoE: norms before them, and experts by DeepSeek V3's rule in all layers but the first ones.
#include "core/model/arch/families.h"
#include "core/model/arch/mixture.h"

namespace quire::model {
namespace {

// Three layers slide, the fourth is full; no layer slides without a window.
std::vector<bool> sliding_layers(const JsonFields& fields, std::size_t num_layers, std::uint32_t window) {
  if (const auto given = read_sliding(fields, num_layers)) return *given;
  if (window == 0) return std::vector<bool>(num_layers, false);
  return sliding_pattern(
      num_layers, static_cast<std::uint32_t>(fields.optional_uint("sliding_window_pattern", 1, 4096).value_or(4)));
}

ModelSpec read_hybrid(const JsonFields& fields, std::string_view model_type) {
  ModelSpec spec = read_model(fields, {.model_type = model_type, .positions = 2048, .kv_heads = 32, .eps = 1e-5});
  set_rope(fields, {}, spec);
  const std::uint32_t window = read_window(fields, 4096);
  set_windows(fields, sliding_layers(fields, spec.layers.size(), window), window, spec);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm};
    if (window != 0 && layer.attention.window == 0) layer.attention.rope = AttentionLayer::kNoRope;
  }
  return spec;
}

}  // namespace

ModelSpec read_exaone4(const JsonFields& fields) {
  ModelSpec spec = read_hybrid(fields, "exaone4");
  for (LayerSpec& layer : spec.layers) layer.placement = Placement::kPost;
  return spec;
}

ModelSpec read_exaone_moe(const JsonFields& fields) {
  ModelSpec spec = read_hybrid(fields, "exaone_moe");
  MixtureSpec mixture = read_mixture(fields, spec, {.num_experts = 64, .top_k = 8, .width = 1024});
  read_grouped_rule(fields, true, 2.5, mixture);
  const std::uint32_t shared = shared_width(fields, "num_shared_experts", 1, mixture.expert.width);
  const std::vector<bool> usual = all_but_first(fields, 1, spec.layers.size());
  set_experts(mixture, shared, sparse_by_type(fields, usual), spec);
  name_shared_expert("mlp.shared_experts", spec);
  spec.names.experts.choice_bias = "mlp.e_score_correction_bias";
  spec.names.skipped.emplace_back("mtp.*");
  return spec;
}

}  // namespace quire::model
