#include "core/model/gguf/gguf_mixtures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/gguf/gguf_architectures.h"

namespace quire::model {
namespace {

namespace json = boost::json;

// Values of expert_gating_func.
enum Gating : std::uint8_t { kSoftmax = 1, kSigmoid = 2, kSoftmaxOfChosen = 3 };

// Keys of config.json. Most families call an expert's width by one of two names.
struct ExpertKeys {
  std::string_view count = "num_experts";
  std::string_view used = "num_experts_per_tok";
  std::string_view width = "moe_intermediate_size";
};
constexpr std::string_view kWidthOfMlp = "intermediate_size";

const GgufTensor* find_in_layer(const GgufSource& source, std::uint64_t layer, std::string_view name) {
  return source.find(fmt::format("blk.{}.{}", layer, name));
}

// The first layer's that has it; null: none has.
const GgufTensor* find_in_any_layer(const GgufSource& source, std::string_view name) {
  for (std::uint64_t layer = 0; layer < source.layers(); ++layer) {
    if (const GgufTensor* tensor = find_in_layer(source, layer, name)) return tensor;
  }
  return nullptr;
}

std::vector<bool> layers_with_experts(const GgufSource& source) {
  std::vector<bool> out;
  for (std::uint64_t layer = 0; layer < source.layers(); ++layer) {
    out.push_back(find_in_layer(source, layer, "ffn_gate_inp.weight") != nullptr);
  }
  return out;
}

std::uint64_t leading_dense_layers(const GgufSource& source) {
  const std::vector<bool> sparse = layers_with_experts(source);
  return static_cast<std::uint64_t>(std::ranges::find(sparse, true) - sparse.begin());
}

// Dense layers of a list of widths have 0.
std::uint64_t expert_width(const GgufSource& source) {
  std::string_view key = "expert_feed_forward_length";
  std::vector<std::uint64_t> widths = source.by_layer(key);
  if (widths.empty()) widths = source.by_layer(key = "feed_forward_length");
  std::erase(widths, 0u);
  if (widths.empty()) source.file().refuse_key(source.key(key), "is missing or 0");
  if (std::ranges::count(widths, widths.front()) != std::ssize(widths)) {
    source.file().refuse_key(source.key(key), "differs from layer to layer");
  }
  return widths.front();
}

// Of all shared experts side by side; 0: there is none.
std::uint64_t shared_width(const GgufSource& source) {
  const GgufTensor* up = find_in_any_layer(source, "ffn_up_shexp.weight");
  return up == nullptr || up->shape.empty() ? 0 : up->shape.front();
}

std::uint64_t num_shared(const GgufSource& source) {
  const std::uint64_t all = shared_width(source);
  const std::uint64_t one = expert_width(source);
  if (all % one != 0) {
    source.refuse_tensor(*find_in_any_layer(source, "ffn_up_shexp.weight"),
                         fmt::format("has {} rows; expected a multiple of an expert's {}", all, one));
  }
  return all / one;
}

void describe_experts(const GgufSource& source, const ExpertKeys& keys, std::initializer_list<Gating> gatings,
                      json::object& config) {
  config[keys.count] = source.require_uint("expert_count");
  config[keys.used] = source.require_uint("expert_used_count");
  config[keys.width] = expert_width(source);
  const auto gating = source.uint("expert_gating_func");
  if (!gating || *gating == 0 || std::ranges::find(gatings, *gating) != gatings.end()) return;
  source.file().refuse_key(source.key("expert_gating_func"),
                           fmt::format("is {}; expected {} for this architecture", *gating, int{*gatings.begin()}));
}

// DeepSeek V3's rule.
void describe_grouped_experts(const GgufSource& source, const ExpertKeys& keys, json::object& config) {
  describe_experts(source, keys, {kSigmoid}, config);
  config["n_shared_experts"] = num_shared(source);
  config["first_k_dense_replace"] = leading_dense_layers(source);
  if (const auto normed = source.flag("expert_weights_norm")) config["norm_topk_prob"] = *normed;
  copy_number(source, "expert_weights_scale", config, "routed_scaling_factor");
  if (const auto groups = source.uint("expert_group_count")) config["n_group"] = *groups;
  if (const auto used = source.uint("expert_group_used_count")) config["topk_group"] = *used;
}

void describe_qwen_moe(const GgufSource& source, bool normed, json::object& config) {
  describe_experts(source, {}, {kSoftmax}, config);
  config["norm_topk_prob"] = source.flag("expert_weights_norm").value_or(normed);
  json::array dense;
  const std::vector<bool> sparse = layers_with_experts(source);
  for (std::size_t layer = 0; layer < sparse.size(); ++layer) {
    if (!sparse[layer]) dense.emplace_back(layer);
  }
  config["mlp_only_layers"] = dense;
}

}  // namespace

void describe_mixtral(const GgufSource& source, json::object& config) {
  config["model_type"] = "mixtral";
  describe_experts(source, {.count = "num_local_experts", .width = kWidthOfMlp}, {kSoftmax}, config);
}

void describe_qwen2_moe(const GgufSource& source, json::object& config) {
  describe_qwen_moe(source, false, config);
  if (const std::uint64_t shared = shared_width(source)) config["shared_expert_intermediate_size"] = shared;
}

void describe_qwen3_moe(const GgufSource& source, json::object& config) { describe_qwen_moe(source, true, config); }

void describe_olmoe(const GgufSource& source, json::object& config) {
  describe_experts(source, {.width = kWidthOfMlp}, {kSoftmax}, config);
  config["norm_topk_prob"] = source.flag("expert_weights_norm").value_or(false);
}

void describe_granitemoe(const GgufSource& source, json::object& config) {
  describe_experts(source, {.count = "num_local_experts", .width = kWidthOfMlp}, {kSoftmax, kSoftmaxOfChosen}, config);
  const std::uint64_t shared = shared_width(source);
  if (shared == 0) return;
  config["model_type"] = "granitemoeshared";
  config["shared_intermediate_size"] = shared;
}

void describe_phimoe(const GgufSource& source, json::object& config) {
  describe_experts(source, {.count = "num_local_experts", .width = kWidthOfMlp}, {kSoftmax}, config);
  config["attention_bias"] = source.has_tensor("blk.0.attn_q.bias") || source.has_tensor("blk.0.attn_qkv.bias");
  config["lm_head_bias"] = source.has_tensor("output.bias");
}

// The last layer with experts has no key: the tensors say.
void describe_ernie4_5_moe(const GgufSource& source, json::object& config) {
  describe_experts(source, {.count = "moe_num_experts", .used = "moe_k"}, {kSoftmax}, config);
  config["moe_num_shared_experts"] = num_shared(source);
  config["moe_layer_interval"] = source.uint("interleave_moe_layer_step").value_or(1);
  config["moe_layer_start_index"] = source.uint("leading_dense_block_count").value_or(leading_dense_layers(source));
  const std::vector<bool> sparse = layers_with_experts(source);
  const auto last = std::find(sparse.rbegin(), sparse.rend(), true);
  config["moe_layer_end_index"] = sparse.rend() - last - 1;
}

void describe_glm4_moe(const GgufSource& source, json::object& config) {
  describe_grouped_experts(source, {.count = "n_routed_experts"}, config);
  config["use_qk_norm"] = source.has_tensor("blk.0.attn_q_norm.weight");
}

// A window that some of its layers may have is in no key.
void describe_dots1(const GgufSource& source, json::object& config) {
  describe_grouped_experts(source, {.count = "n_routed_experts"}, config);
  config["sliding_window"] = nullptr;
}

void describe_minimax_m2(const GgufSource& source, json::object& config) {
  describe_experts(source, {.count = "num_local_experts", .width = kWidthOfMlp}, {kSigmoid}, config);
  config["rotary_dim"] = source.uint("rope.dimension_count").value_or(source.head_dim());
}

// YaRN without whole numbers of dimensions, as the model has it.
void describe_gpt_oss(const GgufSource& source, json::object& config) {
  describe_experts(source, {.count = "num_local_experts", .width = kWidthOfMlp}, {kSoftmaxOfChosen}, config);
  if (const auto window = source.uint("attention.sliding_window")) config["sliding_window"] = *window;
  if (json::value* scaling = config.if_contains("rope_scaling")) scaling->as_object()["truncate"] = false;
}

// The shared expert is as wide as the others.
void describe_hunyuan_moe(const GgufSource& source, json::object& config) {
  describe_experts(source, {.used = "moe_topk", .width = kWidthOfMlp}, {kSoftmax}, config);
}

void describe_hy_v3(const GgufSource& source, json::object& config) {
  describe_experts(source, {}, {kSigmoid}, config);
  config["num_shared_experts"] = num_shared(source);
  copy_number(source, "expert_weights_scale", config, "router_scaling_factor");
  json::array types;
  for (const bool sparse : layers_with_experts(source)) types.emplace_back(sparse ? "sparse" : "dense");
  config["mlp_layer_types"] = types;
}

// V2 by softmax, V3 (and Kimi K2, GLM-4.7-Flash) by sigmoid with a bias for choosing. mscale is not in the file: it is
// mscale_all_dim in all of these models.
void describe_deepseek(const GgufSource& source, json::object& config) {
  const bool is_v3 = source.uint("expert_gating_func").value_or(0) == kSigmoid ||
                     find_in_any_layer(source, "exp_probs_b.bias") != nullptr;
  config["model_type"] = is_v3 ? "deepseek_v3" : "deepseek_v2";
  config["kv_lora_rank"] = source.require_uint("attention.kv_lora_rank");
  config["q_lora_rank"] = nullptr;
  if (const auto rank = source.uint("attention.q_lora_rank")) config["q_lora_rank"] = *rank;
  const std::uint64_t rope = source.require_uint("rope.dimension_count");
  const std::uint64_t key = source.require_uint("attention.key_length_mla");
  if (key <= rope) source.file().refuse_key(source.key("attention.key_length_mla"), "is no more than what turns of it");
  config["qk_rope_head_dim"] = rope;
  config["qk_nope_head_dim"] = key - rope;
  config["v_head_dim"] = source.require_uint("attention.value_length_mla");
  if (const auto multiplier = source.number("rope.scaling.yarn_log_multiplier")) {
    if (json::value* scaling = config.if_contains("rope_scaling")) {
      scaling->as_object()["mscale"] = scaling->as_object()["mscale_all_dim"] = 10.0 * *multiplier;
    }
  }
  config["norm_topk_prob"] = false;
  if (is_v3) {
    source.require_uint("expert_group_count");
    return describe_grouped_experts(source, {.count = "n_routed_experts"}, config);
  }
  describe_experts(source, {.count = "n_routed_experts"}, {kSoftmax}, config);
  config["n_shared_experts"] = num_shared(source);
  config["first_k_dense_replace"] = leading_dense_layers(source);
  copy_number(source, "expert_weights_scale", config, "routed_scaling_factor");
  if (source.uint("expert_group_count").value_or(1) == 1) return;
  config["topk_method"] = "group_limited_greedy";
  config["n_group"] = source.require_uint("expert_group_count");
  config["topk_group"] = source.require_uint("expert_group_used_count");
}

void describe_gemma4_experts(const GgufSource& source, json::object& config) {
  describe_experts(source, {.used = "top_k_experts"}, {kSoftmax}, config);
  config["enable_moe_block"] = true;
}

void rename_gpt_oss(const GgufSource&, TensorNames& names) {
  names.mlp_norm = "post_attention_norm";
  names.sinks = "attn_sinks.weight";
}

void rename_deepseek(const GgufSource&, TensorNames& names) {
  names.q_low = "attn_q_a";
  names.q_low_norm = "attn_q_a_norm";
  names.q_high = "attn_q_b";
  names.kv_low = "attn_kv_a_mqa";
  names.kv_low_norm = "attn_kv_a_norm";
  names.k_high = "attn_k_b";
  names.v_high = "attn_v_b";
}

ExpertNames gguf_expert_names(const GgufSource& source) {
  ExpertNames names;
  names.layout = ExpertNames::Layout::kTogether;
  names.router = "ffn_gate_inp";
  // Older files have a tensor for each expert.
  names.gate = "ffn_gate.{}";
  names.up = "ffn_up.{}";
  names.down = "ffn_down.{}";
  names.all_gate_up = "ffn_gate_up_exps.weight";
  names.all_down = "ffn_down_exps.weight";
  if (find_in_any_layer(source, names.all_gate_up) == nullptr) {
    names.all_gate = "ffn_gate_exps.weight";
    names.all_up = "ffn_up_exps.weight";
  }
  names.shared_gate = "ffn_gate_shexp";
  names.shared_up = "ffn_up_shexp";
  names.shared_down = "ffn_down_shexp";
  names.shared_weight = "ffn_gate_inp_shexp";
  names.choice_bias = find_in_any_layer(source, "exp_probs_b") == nullptr ? "exp_probs_b.bias" : "exp_probs_b";
  const GgufTensor* bias = find_in_any_layer(source, names.choice_bias);
  if (bias != nullptr && bias->shape.size() == 2 && bias->shape.front() == 1) names.choice_bias_shape = bias->shape;
  names.router_norm = "ffn_gate_inp.scale";
  names.scales = "ffn_down_exps.scale";
  names.norm = "pre_ffw_norm_2";
  names.out_norm = "post_ffw_norm_2";
  names.shared_norm = "post_ffw_norm_1";
  return names;
}

}  // namespace quire::model
