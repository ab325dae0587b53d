// Gemma: norms that multiply by 1 + w, a tanh gelu, scaled embeddings. Gemma 2 and 3: norms on both sides of attention
// and MLP, layers that slide, soft caps (2) or norms of heads and two RoPE tables (3). VaultGemma: Gemma 2 with norms
// before attention and MLP alone.
#include <cmath>

#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

namespace {

// A cap of null or 0: none.
float read_cap(const JsonFields& fields, std::string_view key, double fallback) {
  if (!fields.has(key)) return fields.is_null(key) ? 0.0f : static_cast<float>(fallback);
  return static_cast<float>(*fields.optional_number(key, 0.0, 1e6));
}

FamilyDefaults gemma(std::string_view model_type, std::uint32_t positions, std::uint32_t vocab) {
  FamilyDefaults defaults;
  defaults.model_type = model_type;
  defaults.positions = positions;
  defaults.vocab = vocab;
  defaults.heads = 8;
  defaults.kv_heads = 4;
  defaults.head_dim = 256;
  defaults.tied = true;
  defaults.activation_key = "hidden_activation";
  defaults.activation = "gelu_pytorch_tanh";
  return defaults;
}

// Norms that multiply by 1 + w; embeddings times √E.
ModelSpec read_scaled(const JsonFields& fields, const FamilyDefaults& defaults) {
  ModelSpec spec = read_model(fields, defaults);
  if (fields.has("use_bidirectional_attention") && fields.optional_bool("use_bidirectional_attention").value_or(true)) {
    fields.mismatch("use_bidirectional_attention", "expected false: rows attend to earlier positions only");
  }
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) layer.attention.qkv_bias = layer.attention.out_bias = biased;
  spec.norm_offset = 1.0f;
  spec.embedding_scale = std::sqrt(static_cast<float>(spec.hidden));
  return spec;
}

// Scores times a scale of their own; layers of `placement`.
ModelSpec read_placed(const JsonFields& fields, const FamilyDefaults& defaults, Placement placement) {
  ModelSpec spec = read_scaled(fields, defaults);
  const double scalar = fields.optional_number("query_pre_attn_scalar", 1e-3, 1e6).value_or(256.0);
  for (LayerSpec& layer : spec.layers) {
    layer.placement = placement;
    layer.attention.scale = static_cast<float>(1.0 / std::sqrt(scalar));
  }
  spec.names.mlp_norm = "pre_feedforward_layernorm";
  return spec;
}

// Gemma 2 and VaultGemma: every second layer slides, soft caps.
ModelSpec read_capped(const JsonFields& fields, std::string_view model_type, Placement placement) {
  ModelSpec spec = read_placed(fields, gemma(model_type, 8192, 256000), placement);
  set_rope(fields, {}, spec);
  std::vector<bool> sliding;
  for (std::size_t layer = 0; layer < spec.layers.size(); ++layer) sliding.push_back(layer % 2 == 0);
  set_windows(fields, read_sliding(fields, spec.layers.size()).value_or(sliding), read_window(fields, 4096), spec);
  for (LayerSpec& layer : spec.layers) layer.attention.softcap = read_cap(fields, "attn_logit_softcapping", 50.0);
  spec.logit_softcap = read_cap(fields, "final_logit_softcapping", 30.0);
  return spec;
}

}  // namespace

ModelSpec read_gemma(const JsonFields& fields) {
  FamilyDefaults defaults = gemma("gemma", 8192, 256000);
  defaults.heads = 16;
  defaults.kv_heads = 16;
  defaults.activation_key = "hidden_act";
  defaults.gelu_by_tanh = true;
  ModelSpec spec = read_scaled(fields, defaults);
  set_rope(fields, {}, spec);
  return spec;
}

ModelSpec read_gemma2(const JsonFields& fields) { return read_capped(fields, "gemma2", Placement::kSandwich); }

ModelSpec read_vaultgemma(const JsonFields& fields) { return read_capped(fields, "vaultgemma", Placement::kPre); }

// attn_logit_softcapping is a key of its config, and is never applied.
ModelSpec read_gemma3(const JsonFields& fields) {
  ModelSpec spec = read_placed(fields, gemma("gemma3_text", 131072, 262208), Placement::kSandwich);
  const auto pattern = static_cast<std::uint32_t>(fields.optional_uint("sliding_window_pattern", 1, 4096).value_or(6));
  const std::vector<bool> sliding = sliding_pattern(spec.layers.size(), pattern);
  set_windows(fields, read_sliding(fields, spec.layers.size()).value_or(sliding), read_window(fields, 4096), spec);
  RopeConfig local;
  local.theta = fields.optional_number("rope_local_base_freq", 2.0, 1e15).value_or(1e4);
  set_ropes_by_type(fields, {.theta = 1e6}, local, spec);
  for (LayerSpec& layer : spec.layers) layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm};
  spec.logit_softcap = read_cap(fields, "final_logit_softcapping", 0.0);
  return spec;
}

}  // namespace quire::model
