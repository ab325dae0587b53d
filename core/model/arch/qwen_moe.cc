// Qwen2-MoE: Qwen2 with experts and a shared expert behind a gate. Qwen3-MoE, and the text part of Qwen3-VL-MoE: Qwen3
// with experts. Some layers may be dense.
#include <algorithm>

#include "core/model/arch/families.h"
#include "core/model/arch/mixture.h"

namespace quire::model {
namespace {

// Every decoder_sparse_step-th layer has experts, but not those of mlp_only_layers.
std::vector<bool> sparse_layers(const JsonFields& fields, std::size_t num_layers) {
  const std::uint64_t step = fields.optional_uint("decoder_sparse_step", 1, 1u << 12).value_or(1);
  const std::vector<std::uint64_t> dense = fields.uint_or_list("mlp_only_layers", 1u << 12);
  std::vector<bool> sparse;
  for (std::size_t layer = 0; layer < num_layers; ++layer) {
    sparse.push_back((layer + 1) % step == 0 && std::ranges::find(dense, layer) == dense.end());
  }
  return sparse;
}

std::uint32_t used_window(const JsonFields& fields) {
  return read_flag(fields, "use_sliding_window", false) ? read_window(fields, 4096) : 0;
}

void read_experts(const JsonFields& fields, const MixtureDefaults& defaults, std::uint32_t shared_width,
                  ModelSpec& spec) {
  MixtureSpec mixture = read_mixture(fields, spec, defaults);
  mixture.rule.normed = read_flag(fields, "norm_topk_prob", false);
  mixture.shared_gate = shared_width != 0;
  set_experts(mixture, shared_width, sparse_layers(fields, spec.layers.size()), spec);
}

}  // namespace

// Every second one of the first max_window_layers layers slides, beginning with the first.
ModelSpec read_qwen2_moe(const JsonFields& fields) {
  ModelSpec spec =
      read_model(fields, {.model_type = "qwen2_moe", .positions = 32768, .kv_heads = 16, .takes_head_dim = false});
  set_rope(fields, {}, spec);
  const std::uint32_t window = used_window(fields);
  const std::uint64_t last = fields.optional_uint("max_window_layers", 0, (1u << 31) - 1).value_or(28);
  std::vector<bool> sliding;
  for (std::size_t layer = 0; layer < spec.layers.size(); ++layer) {
    sliding.push_back(window != 0 && layer % 2 == 0 && layer < last);
  }
  set_windows(fields, read_sliding(fields, spec.layers.size()).value_or(sliding), window, spec);
  for (LayerSpec& layer : spec.layers) layer.attention.qkv_bias = read_flag(fields, "qkv_bias", true);
  const auto shared =
      static_cast<std::uint32_t>(fields.optional_uint("shared_expert_intermediate_size", 1, kMaxWidth).value_or(5632));
  read_experts(fields, {.num_experts = 60, .top_k = 4, .width = 1408}, shared, spec);
  return spec;
}

ModelSpec read_qwen3_moe(const JsonFields& fields) {
  ModelSpec spec = read_model(fields, {.model_type = "qwen3_moe", .positions = 32768, .kv_heads = 4});
  set_rope(fields, {}, spec);
  const std::uint32_t window = used_window(fields);
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.window = window;
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm};
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
  }
  read_experts(fields, {.num_experts = 128, .top_k = 8, .width = 768}, 0, spec);
  return spec;
}

// Weights are always normed.
ModelSpec read_qwen3_vl_moe(const JsonFields& fields) {
  ModelSpec spec = read_model(fields, {.model_type = "qwen3_vl_moe_text", .positions = 128000, .kv_heads = 16});
  set_rope(fields, {.theta = 5e5, .sections = true}, spec);
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.q_norm = layer.attention.k_norm = HeadNormSpec{layer.norm};
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
  }
  MixtureSpec mixture = read_mixture(fields, spec, {.num_experts = 60, .top_k = 4, .width = 1408});
  mixture.rule.normed = true;
  set_experts(mixture, 0, sparse_layers(fields, spec.layers.size()), spec);
  spec.names.experts.layout = ExpertNames::Layout::kTransposed;
  return spec;
}

}  // namespace quire::model
