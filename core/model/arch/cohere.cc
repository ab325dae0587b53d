// Cohere Command R (cohere) and Command R7B, A (cohere2).
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

namespace {

// Attention and MLP side by side behind one LayerNorm without bias; RoPE by neighbours.
ModelSpec read_parallel(const JsonFields& fields, std::string_view model_type, std::uint32_t head_dim) {
  FamilyDefaults defaults;
  defaults.model_type = model_type;
  defaults.positions = 8192;
  defaults.kv_heads_of_heads = true;
  defaults.head_dim = head_dim;
  defaults.tied = true;
  defaults.set_layer_norms("layer_norm_eps", /*biases=*/false);
  ModelSpec spec = read_model(fields, defaults);
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.placement = Placement::kParallel;
    layer.attention.interleaved = true;
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
  }
  spec.logit_scale = static_cast<float>(fields.optional_number("logit_scale", 1e-6, 1e6).value_or(0.0625));
  return spec;
}

}  // namespace

ModelSpec read_cohere(const JsonFields& fields) {
  ModelSpec spec = read_parallel(fields, "cohere", 0);
  set_rope(fields, {.theta = 5e5}, spec);
  if (!read_flag(fields, "use_qk_norm", false)) return spec;
  for (LayerSpec& layer : spec.layers) {
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm, HeadNormSpec::Over::kEachHead};
  }
  return spec;
}

// Layers that slide turn, full ones have no positions.
ModelSpec read_cohere2(const JsonFields& fields) {
  ModelSpec spec = read_parallel(fields, "cohere2", 128);
  if (read_flag(fields, "use_qk_norm", false))
    fields.mismatch("use_qk_norm", "expected false: cohere2 has no such norms");
  set_rope(fields, {}, spec);
  const auto pattern = static_cast<std::uint32_t>(fields.optional_uint("sliding_window_pattern", 1, 4096).value_or(4));
  const std::vector<bool> sliding = sliding_pattern(spec.layers.size(), pattern);
  set_windows(fields, read_sliding(fields, spec.layers.size()).value_or(sliding), read_window(fields, 4096), spec);
  for (LayerSpec& layer : spec.layers) {
    if (layer.attention.window == 0) layer.attention.rope = AttentionLayer::kNoRope;
  }
  return spec;
}

}  // namespace quire::model
