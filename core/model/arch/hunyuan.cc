// Hunyuan (0.5B to 7B, Hunyuan-MT): Llama with norms of the heads of q and k after rope. Hunyuan-A13B: with experts,
// and a shared one of the same width.
#include "core/model/arch/families.h"
#include "core/model/arch/mixture.h"
#include "core/model/rope/rope_math.h"

namespace quire::model {
namespace {

// "dynamic" with alpha is a theta of its own, whatever the length of a sequence.
void apply_alpha(const JsonFields& fields, ModelSpec& spec) {
  RopeConfig& rope = spec.ropes.front();
  if (rope.kind != RopeKind::kDynamic) return;
  auto parameters = fields.optional_object("rope_scaling");
  if (!parameters || parameters->keys().empty()) parameters = fields.optional_object("rope_parameters");
  const double alpha = parameters ? parameters->optional_number("alpha", 0.0, 1e9).value_or(0.0) : 0.0;
  if (alpha == 0.0) return;
  const double dims = spec.layers.front().attention.head_dim;
  rope.kind = RopeKind::kDefault;
  rope.theta *= rope_math::pow(alpha, dims / (dims - 2.0));
  rope.factor = 1.0;
}

ModelSpec read_normed_late(const JsonFields& fields, std::string_view model_type) {
  ModelSpec spec =
      read_model(fields, {.model_type = model_type, .positions = 2048, .kv_heads_of_heads = true, .eps = 1e-5});
  set_rope(fields, {}, spec);
  apply_alpha(fields, spec);
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm};
    layer.attention.norms_after_rope = true;
  }
  spec.names.q_norm = "self_attn.query_layernorm";
  spec.names.k_norm = "self_attn.key_layernorm";
  return spec;
}

}  // namespace

ModelSpec read_hunyuan(const JsonFields& fields) { return read_normed_late(fields, "hunyuan_v1_dense"); }

ModelSpec read_hunyuan_moe(const JsonFields& fields) {
  ModelSpec spec = read_normed_late(fields, "hunyuan_v1_moe");
  MixtureSpec mixture = read_mixture(fields, spec, {.num_experts = 1, .top_k = 1, .width_key = "intermediate_size"});
  mixture.rule.normed = true;
  set_experts(mixture, mixture.expert.width, std::vector<bool>(spec.layers.size(), true), spec);
  name_shared_expert("mlp.shared_mlp", spec);
  spec.names.experts.router = "mlp.gate.wg";
  return spec;
}

}  // namespace quire::model
