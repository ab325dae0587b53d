#include "core/model/arch/mixture.h"

#include <algorithm>

namespace quire::model {
namespace {

constexpr std::uint64_t kMaxExperts = 1u << 14;

std::uint32_t read_count(const JsonFields& fields, std::string_view key, std::uint64_t high, std::uint32_t usual) {
  if (usual != 0 && !fields.has(key)) return usual;
  if (!fields.is_array(key)) return static_cast<std::uint32_t>(fields.require_uint(key, 1, high));
  const std::vector<std::uint64_t> by_layer = fields.uint_or_list(key, high);
  const bool same = std::ranges::all_of(by_layer, [&](std::uint64_t count) { return count == by_layer.front(); });
  if (by_layer.empty() || by_layer.front() == 0 || !same) fields.mismatch(key, "expected one number for all layers");
  return static_cast<std::uint32_t>(by_layer.front());
}

}  // namespace

std::string_view present_key(const JsonFields& fields, std::initializer_list<std::string_view> keys) {
  const auto* const found = std::ranges::find_if(keys, [&](std::string_view key) { return fields.has(key); });
  return found == keys.end() ? *keys.begin() : *found;
}

MixtureSpec read_mixture(const JsonFields& fields, const ModelSpec& spec, const MixtureDefaults& defaults) {
  const std::string_view experts =
      present_key(fields, {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"});
  const std::string_view top_k =
      present_key(fields, {"num_experts_per_tok", "moe_k", "moe_topk", "num_experts_per_token", "top_k_experts"});
  MixtureSpec mixture;
  mixture.rule.num_experts = read_count(fields, experts, kMaxExperts, defaults.num_experts);
  mixture.rule.top_k = read_count(fields, top_k, mixture.rule.num_experts, defaults.top_k);
  mixture.expert = spec.layers.front().mlp;
  mixture.expert.width = read_count(fields, defaults.width_key, kMaxWidth, defaults.width);
  return mixture;
}

void read_groups(const JsonFields& fields, const GroupDefaults& groups, backend::RouteRule& rule) {
  rule.num_groups = read_count(fields, "n_group", rule.num_experts, groups.num_groups);
  rule.top_groups = read_count(fields, "topk_group", rule.num_groups, groups.top_groups);
  if (rule.num_experts % rule.num_groups != 0) {
    fields.mismatch("n_group", "expected a divisor of the " + std::to_string(rule.num_experts) + " experts");
  }
  if (rule.top_k > rule.num_experts / rule.num_groups * rule.top_groups) {
    fields.mismatch("topk_group", "expected groups with at least " + std::to_string(rule.top_k) + " experts");
  }
}

void read_grouped_rule(const JsonFields& fields, bool normed, double scale, MixtureSpec& mixture,
                       const GroupDefaults& groups) {
  backend::RouteRule& rule = mixture.rule;
  rule.score = backend::RouteScore::kSigmoid;
  rule.normed = read_flag(fields, "norm_topk_prob", normed);
  rule.norm_eps = rule.normed ? 1e-20f : 0.0f;
  rule.scale = static_cast<float>(fields.optional_number("routed_scaling_factor", 1e-6, 1e6).value_or(scale));
  read_groups(fields, groups, rule);
  mixture.choice_bias = true;
}

void set_experts(const MixtureSpec& mixture, std::uint32_t shared_width, const std::vector<bool>& sparse,
                 ModelSpec& spec) {
  for (std::size_t layer = 0; layer < sparse.size(); ++layer) {
    if (!sparse[layer]) continue;
    spec.layers[layer].experts = mixture;
    spec.layers[layer].mlp.width = shared_width;
  }
}

std::vector<bool> all_but_first(const JsonFields& fields, std::uint32_t usual, std::size_t num_layers) {
  const std::uint64_t dense = fields.optional_uint("first_k_dense_replace", 0, 1u << 12).value_or(usual);
  std::vector<bool> sparse(num_layers, true);
  std::fill_n(sparse.begin(), std::min<std::uint64_t>(dense, num_layers), false);
  return sparse;
}

std::vector<bool> sparse_by_type(const JsonFields& fields, const std::vector<bool>& usual) {
  const auto types = fields.optional_strings("mlp_layer_types");
  if (!types) return usual;
  if (types->size() != usual.size()) {
    fields.refuse("mlp_layer_types", "has " + std::to_string(types->size()) +
                                         " entries; expected num_hidden_layers = " + std::to_string(usual.size()));
  }
  std::vector<bool> sparse;
  for (const std::string& type : *types) {
    if (type != "sparse" && type != "dense") fields.mismatch("mlp_layer_types", "expected dense or sparse");
    sparse.push_back(type == "sparse");
  }
  return sparse;
}

std::uint32_t shared_width(const JsonFields& fields, std::string_view key, std::uint64_t usual, std::uint32_t width) {
  const std::uint64_t most = kMaxWidth / width;
  return static_cast<std::uint32_t>(fields.optional_uint(key, 0, most).value_or(usual)) * width;
}

void name_shared_expert(std::string_view shared_name, ModelSpec& spec) {
  const std::string name(shared_name);
  spec.names.experts.shared_gate = name + ".gate_proj";
  spec.names.experts.shared_up = name + ".up_proj";
  spec.names.experts.shared_down = name + ".down_proj";
}

void name_numbered_experts(std::string_view block, ModelSpec& spec) {
  const std::string name(block);
  ExpertNames& names = spec.names.experts;
  names.router = name + ".gate";
  names.gate = name + ".experts.{}.w1";
  names.up = name + ".experts.{}.w3";
  names.down = name + ".experts.{}.w2";
  names.all_gate_up = name + ".experts.gate_up_proj";
  names.all_down = name + ".experts.down_proj";
}

}  // namespace quire::model
