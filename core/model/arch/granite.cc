// Granite 3: Llama with four multipliers; granitemoe with experts, granitemoeshared with a shared expert beside them.
#include "core/model/arch/families.h"
#include "core/model/arch/mixture.h"

namespace quire::model {
namespace {

ModelSpec read_multiplied(const JsonFields& fields, std::string_view model_type) {
  ModelSpec spec = read_model(fields, {.model_type = model_type, .positions = 2048, .kv_heads_of_heads = true});
  set_rope(fields, {}, spec);
  const auto number = [&](std::string_view key) {
    return static_cast<float>(fields.optional_number(key, 1e-6, 1e6).value_or(1.0));
  };
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.scale = number("attention_multiplier");
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
    layer.mlp.bias = read_flag(fields, "mlp_bias", false);
    layer.residual_scale = number("residual_multiplier");
  }
  spec.embedding_scale = number("embedding_multiplier");
  spec.logit_scale = 1.0f / number("logits_scaling");
  return spec;
}

ModelSpec read_mixed(const JsonFields& fields, std::string_view model_type, std::uint32_t shared_width) {
  ModelSpec spec = read_multiplied(fields, model_type);
  refuse_bias(fields, "mlp_bias", spec, "MLP biases");
  MixtureSpec mixture = read_mixture(fields, spec, {.num_experts = 8, .top_k = 2, .width_key = "intermediate_size"});
  mixture.rule.score = backend::RouteScore::kLogit;
  set_experts(mixture, shared_width, std::vector<bool>(spec.layers.size(), true), spec);
  name_numbered_experts("block_sparse_moe", spec);
  ExpertNames& names = spec.names.experts;
  names.router = "block_sparse_moe.router.layer";
  names.all_gate_up = "block_sparse_moe.input_linear.weight";
  names.all_down = "block_sparse_moe.output_linear.weight";
  names.shared_gate_up = "shared_mlp.input_linear";
  names.shared_down = "shared_mlp.output_linear";
  names.layout = ExpertNames::Layout::kTogether;
  return spec;
}

}  // namespace

ModelSpec read_granite(const JsonFields& fields) { return read_multiplied(fields, "granite"); }
ModelSpec read_granitemoe(const JsonFields& fields) { return read_mixed(fields, "granitemoe", 0); }
ModelSpec read_granitemoeshared(const JsonFields& fields) {
  const auto width = fields.optional_uint("shared_intermediate_size", 0, kMaxWidth).value_or(0);
  return read_mixed(fields, "granitemoeshared", static_cast<std::uint32_t>(width));
}

}  // namespace quire::model
