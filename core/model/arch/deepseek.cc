// DeepSeek V2 and V3 (R1, and Kimi K2 under a name of its own), GLM-4.7-Flash and Mistral Small 4: latent attention,
// and experts beside shared ones in all layers but the first. Layers behind the last one, which propose drafts, are
// skipped.
#include <cmath>
#include <string>

#include "core/model/arch/families.h"
#include "core/model/arch/mixture.h"

namespace quire::model {
namespace {

constexpr std::uint64_t kMaxRank = 1u << 16;
constexpr std::uint64_t kMaxHeadPart = 1u << 10;

// Values of keys that a config.json may leave out; 0: required.
struct LatentDefaults {
  std::string_view model_type;
  std::uint32_t positions = 2048;
  double eps = 1e-6;
  std::uint32_t rank = 512;
  std::uint32_t query_rank = 1536;
  std::uint32_t rope_dim = 64;
  std::uint32_t nope_dim = 128;
  std::uint32_t value_dim = 128;
};

std::uint32_t read_dim(const JsonFields& fields, std::string_view key, std::uint64_t most, std::uint32_t usual) {
  return static_cast<std::uint32_t>(fields.optional_uint(key, 1, most).value_or(usual));
}

// A null is a model whose queries have one matrix.
std::uint32_t read_query_rank(const JsonFields& fields, std::uint32_t usual) {
  if (fields.is_null("q_lora_rank")) return 0;
  return read_dim(fields, "q_lora_rank", kMaxRank, usual);
}

// The factor that YaRN puts on cosines and sines for mscale, mscale_all_dim puts on scores, twice.
double score_factor(const RopeConfig& rope) {
  if (rope.kind == RopeKind::kDefault || rope.mscale_all_dim == 0.0 || rope.factor <= 1.0) return 1.0;
  const double m = 0.1 * rope.mscale_all_dim * std::log(rope.factor) + 1.0;
  return m * m;
}

ModelSpec read_latent(const JsonFields& fields, const LatentDefaults& usual) {
  FamilyDefaults defaults;
  defaults.model_type = usual.model_type;
  defaults.positions = usual.positions;
  defaults.kv_heads_of_heads = true;
  defaults.takes_head_dim = false;
  defaults.head_dim = 2;  // until the latent's are known
  defaults.eps = usual.eps;
  ModelSpec spec = read_model(fields, defaults);
  refuse_bias(fields, "attention_bias", spec, "attention biases");
  refuse_bias(fields, "mlp_bias", spec, "MLP biases");
  LatentSpec latent;
  latent.rank = read_dim(fields, "kv_lora_rank", kMaxRank, usual.rank);
  latent.query_rank = read_query_rank(fields, usual.query_rank);
  latent.rope_dim = read_dim(fields, "qk_rope_head_dim", kMaxHeadPart, usual.rope_dim);
  latent.nope_dim = read_dim(fields, "qk_nope_head_dim", kMaxHeadPart, usual.nope_dim);
  latent.value_dim = read_dim(fields, "v_head_dim", kMaxHeadPart, usual.value_dim);
  for (const auto& [key, size] : {std::pair{"kv_lora_rank", latent.rank}, {"qk_rope_head_dim", latent.rope_dim}}) {
    if (size % 2 != 0) fields.mismatch(key, "expected an even number");
  }
  spec.ropes = {read_rope(fields, spec.max_positions, {.partial = true})};
  spec.ropes.front().rotary_fraction = 1.0;  // all of the part that turns
  const double own = 1.0 / std::sqrt(static_cast<double>(latent.nope_dim) + latent.rope_dim);
  const bool in_pairs = read_flag(fields, "rope_interleave", true);
  for (LayerSpec& layer : spec.layers) {
    AttentionLayer& attention = layer.attention;
    attention.num_kv_heads = 1;
    attention.head_dim = latent.rank + latent.rope_dim;
    attention.scale = static_cast<float>(own * score_factor(spec.ropes.front()));
    attention.interleaved = in_pairs;
    attention.latent = latent;
  }
  spec.names.skipped.push_back("model.layers." + std::to_string(spec.layers.size()) + ".*");
  return spec;
}

void set_shared(const JsonFields& fields, const MixtureSpec& mixture, std::uint32_t num_shared,
                const std::vector<bool>& sparse, ModelSpec& spec) {
  set_experts(mixture, shared_width(fields, "n_shared_experts", num_shared, mixture.expert.width), sparse, spec);
  name_shared_expert("mlp.shared_experts", spec);
}

void refuse_intervals(const JsonFields& fields) {
  if (fields.optional_uint("moe_layer_freq", 1, 1u << 12).value_or(1) != 1) {
    fields.mismatch("moe_layer_freq", "expected 1: every layer behind the dense ones has experts");
  }
}

void expect_scores(const JsonFields& fields, std::string_view expected) {
  const std::string given = fields.optional_string("scoring_func").value_or(std::string(expected));
  if (given != expected) fields.mismatch("scoring_func", "expected " + std::string(expected));
}

ModelSpec read_v3(const JsonFields& fields, const LatentDefaults& usual, std::uint32_t groups, double scale,
                  std::uint32_t dense, const MixtureDefaults& experts) {
  ModelSpec spec = read_latent(fields, usual);
  refuse_intervals(fields);
  expect_scores(fields, "sigmoid");
  MixtureSpec mixture = read_mixture(fields, spec, experts);
  read_grouped_rule(fields, true, scale, mixture, {groups, groups == 1 ? 1 : groups / 2});
  const std::vector<bool> usual_layers = all_but_first(fields, dense, spec.layers.size());
  set_shared(fields, mixture, 1, sparse_by_type(fields, usual_layers), spec);
  return spec;
}

}  // namespace

// Softmaxes that are not normed; groups are ordered by their best expert.
ModelSpec read_deepseek_v2(const JsonFields& fields) {
  ModelSpec spec = read_latent(fields, {.model_type = "deepseek_v2"});
  refuse_intervals(fields);
  expect_scores(fields, "softmax");
  MixtureSpec mixture = read_mixture(fields, spec, {.num_experts = 64, .width = 1407});
  const std::string method = fields.optional_string("topk_method").value_or("greedy");
  if (method == "group_limited_greedy") {
    read_groups(fields, {1, 1}, mixture.rule);
    mixture.rule.groups_by_highest = true;
  } else if (method != "greedy") {
    fields.mismatch("topk_method", "expected greedy or group_limited_greedy");
  }
  mixture.rule.scale = static_cast<float>(fields.optional_number("routed_scaling_factor", 1e-6, 1e6).value_or(1.0));
  set_shared(fields, mixture, 2, all_but_first(fields, 0, spec.layers.size()), spec);
  return spec;
}

ModelSpec read_deepseek_v3(const JsonFields& fields) {
  return read_v3(fields, {.model_type = "deepseek_v3", .positions = 4096}, 8, 2.5, 3,
                 {.num_experts = 256, .top_k = 8, .width = 2048});
}

ModelSpec read_kimi_k2(const JsonFields& fields) {
  return read_v3(fields, {.model_type = "kimi_k2", .positions = 4096}, 1, 2.827, 1,
                 {.num_experts = 384, .top_k = 8, .width = 2048});
}

ModelSpec read_glm4_moe_lite(const JsonFields& fields) {
  LatentDefaults usual{.model_type = "glm4_moe_lite", .positions = 202752, .eps = 1e-5};
  usual.query_rank = 768;
  usual.nope_dim = 192;
  usual.value_dim = 256;
  return read_v3(fields, usual, 1, 1.8, 1, {.num_experts = 64, .top_k = 4, .width = 1536});
}

// Queries grow with their positions, as Ministral 3's; softmaxes that are normed.
ModelSpec read_mistral4(const JsonFields& fields) {
  LatentDefaults usual{.model_type = "mistral4", .positions = 1048576};
  usual.rank = 256;
  usual.query_rank = 1024;
  usual.nope_dim = 64;
  if (!fields.has("rope_parameters") && !fields.has("rope_scaling")) {
    fields.refuse("rope_parameters", "is missing; expected the model's YaRN settings");
  }
  ModelSpec spec = read_latent(fields, usual);
  set_position_scale(fields, spec);
  MixtureSpec mixture = read_mixture(fields, spec, {.num_experts = 128, .top_k = 4, .width = 2048});
  read_grouped_rule(fields, true, 1.0, mixture);
  mixture.rule.score = backend::RouteScore::kSoftmax;
  mixture.choice_bias = false;
  set_shared(fields, mixture, 1, all_but_first(fields, 0, spec.layers.size()), spec);
  spec.names.experts.layout = ExpertNames::Layout::kTogether;
  return spec;
}

}  // namespace quire::model
