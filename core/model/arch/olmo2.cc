// OLMo 2 and 3: norms behind attention and MLP instead of before.
#include "core/model/arch/families.h"
#include "core/model/arch/reading.h"

namespace quire::model {

namespace {

// Norms behind attention and MLP, and of all of q and of k as one row each.
ModelSpec read_later_olmo(const JsonFields& fields, std::string_view model_type) {
  ModelSpec spec =
      read_model(fields, {.model_type = model_type, .positions = 2048, .kv_heads_of_heads = true, .eps = 1e-5});
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.placement = Placement::kPost;
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm, HeadNormSpec::Over::kRow};
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
  }
  return spec;
}

}  // namespace

ModelSpec read_olmo2(const JsonFields& fields) {
  ModelSpec spec = read_later_olmo(fields, "olmo2");
  set_rope(fields, {}, spec);
  return spec;
}

// Three layers slide, the fourth is full; RoPE scaling is of the full ones.
ModelSpec read_olmo3(const JsonFields& fields) {
  ModelSpec spec = read_later_olmo(fields, "olmo3");
  const std::vector<bool> sliding = sliding_pattern(spec.layers.size(), 4);
  set_windows(fields, read_sliding(fields, spec.layers.size()).value_or(sliding), read_window(fields, 4096), spec);
  RopeConfig local;
  local.theta = fields.optional_number("rope_theta", 2.0, 1e15).value_or(5e5);
  set_ropes_by_type(fields, {.theta = 5e5}, local, spec);
  return spec;
}

}  // namespace quire::model
