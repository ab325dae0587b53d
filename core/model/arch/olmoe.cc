// OLMoE: Llama with experts, and norms over all heads of q and over all of k, behind which q, k and v may be clipped.
#include "core/model/arch/families.h"
#include "core/model/arch/mixture.h"

namespace quire::model {

ModelSpec read_olmoe(const JsonFields& fields) {
  ModelSpec spec =
      read_model(fields, {.model_type = "olmoe", .positions = 4096, .kv_heads_of_heads = true, .eps = 1e-5});
  set_rope(fields, {}, spec);
  const auto clip = static_cast<float>(fields.optional_number("clip_qkv", 0.0, 1e9).value_or(0.0));
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm, HeadNormSpec::Over::kRow};
    layer.attention.qkv_clip = clip;
    layer.attention.clips_normed = clip != 0.0f;
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
  }
  MixtureSpec mixture =
      read_mixture(fields, spec, {.num_experts = 64, .top_k = 8, .width = 2048, .width_key = "intermediate_size"});
  mixture.rule.normed = read_flag(fields, "norm_topk_prob", false);
  set_experts(mixture, 0, std::vector<bool>(spec.layers.size(), true), spec);
  return spec;
}

}  // namespace quire::model
