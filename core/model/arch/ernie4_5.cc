// ERNIE 4.5: Llama with RoPE by neighbours; its mixtures have experts in some layers, and shared ones beside them.
#include "core/model/arch/families.h"
#include "core/model/arch/mixture.h"

namespace quire::model {
namespace {

ModelSpec read_by_neighbours(const JsonFields& fields, std::string_view model_type, std::uint32_t kv_heads,
                             std::uint32_t head_dim) {
  FamilyDefaults defaults;
  defaults.model_type = model_type;
  defaults.positions = 131072;
  defaults.kv_heads = kv_heads;
  defaults.head_dim = head_dim;
  defaults.tied = true;
  defaults.eps = 1e-5;
  ModelSpec spec = read_model(fields, defaults);
  set_rope(fields, {.theta = 5e5}, spec);
  const bool biased = read_flag(fields, "use_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.interleaved = true;
    layer.attention.qkv_bias = layer.attention.out_bias = layer.mlp.bias = biased;
  }
  return spec;
}

std::vector<bool> sparse_layers(const JsonFields& fields, std::size_t num_layers) {
  const auto layer_of = [&](std::string_view key, std::uint64_t usual) {
    return fields.optional_number(key, -1.0, 1e4).value_or(static_cast<double>(usual));
  };
  const std::uint64_t interval = fields.optional_uint("moe_layer_interval", 1, 1u << 12).value_or(1);
  const double first = layer_of("moe_layer_start_index", 1);
  const double given = layer_of("moe_layer_end_index", num_layers - 1);
  const double last = given == -1.0 ? static_cast<double>(num_layers - 1) : given;
  std::vector<bool> sparse;
  for (std::size_t layer = 0; layer < num_layers; ++layer) {
    const auto index = static_cast<double>(layer);
    sparse.push_back((layer + 1) % interval == 0 && index >= first && index <= last);
  }
  return sparse;
}

}  // namespace

ModelSpec read_ernie4_5(const JsonFields& fields) { return read_by_neighbours(fields, "ernie4_5", 2, 128); }

// Softmaxes, chosen with a bias, normed.
ModelSpec read_ernie4_5_moe(const JsonFields& fields) {
  ModelSpec spec = read_by_neighbours(fields, "ernie4_5_moe", 4, 0);
  MixtureSpec mixture = read_mixture(fields, spec, {.num_experts = 64, .top_k = 6, .width = 1536});
  mixture.rule.normed = true;
  mixture.rule.norm_least = static_cast<float>(fields.optional_number("moe_norm_min", 0.0, 1.0).value_or(1e-12));
  mixture.choice_bias = true;
  const std::uint32_t shared = shared_width(fields, "moe_num_shared_experts", 2, mixture.expert.width);
  set_experts(mixture, shared, sparse_layers(fields, spec.layers.size()), spec);
  name_shared_expert("mlp.shared_experts", spec);
  spec.names.experts.choice_bias = "mlp.moe_statics.e_score_correction_bias";
  spec.names.experts.choice_bias_shape = {1, mixture.rule.num_experts};
  spec.names.skipped.emplace_back("model.mtp_*");
  return spec;
}

}  // namespace quire::model
