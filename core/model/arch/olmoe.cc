// OLMoE: Llama with experts, and norms over all heads of q and over all of k.
#include "core/model/arch/families.h"
#include "core/model/arch/mixture.h"

namespace quire::model {

ModelSpec read_olmoe(const JsonFields& fields) {
  ModelSpec spec =
      read_model(fields, {.model_type = "olmoe", .positions = 4096, .kv_heads_of_heads = true, .eps = 1e-5});
  set_rope(fields, {}, spec);
  if (fields.has("clip_qkv")) fields.mismatch("clip_qkv", "expected null: q and k are not clipped behind their norms");
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm, HeadNormSpec::Over::kRow};
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
  }
  MixtureSpec mixture =
      read_mixture(fields, spec, {.num_experts = 64, .top_k = 8, .width = 2048, .width_key = "intermediate_size"});
  mixture.rule.normed = read_flag(fields, "norm_topk_prob", false);
  set_experts(mixture, 0, std::vector<bool>(spec.layers.size(), true), spec);
  return spec;
}

}  // namespace quire::model
