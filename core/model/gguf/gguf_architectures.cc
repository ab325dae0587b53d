#include "core/model/gguf/gguf_architectures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "core/base/log.h"
#include "core/model/gguf/gguf_mixtures.h"

namespace quire::model {
namespace {

namespace json = boost::json;

void describe_window(const GgufSource& source, json::object& config) {
  if (const auto window = source.uint("attention.sliding_window"); window && *window != 0) {
    config["sliding_window"] = *window;
  } else {
    config["sliding_window"] = nullptr;
  }
}

// The window, and the layers that have it, if the file says which.
void describe_windows(const GgufSource& source, json::object& config) {
  describe_window(source, config);
  const auto slide = source.flags("attention.sliding_window_pattern");
  if (!slide) return;
  json::array types;
  for (const bool slides : *slide) types.emplace_back(slides ? "sliding_attention" : "full_attention");
  config["layer_types"] = types;
}

// llama: Llama, and Mistral, SmolLM2, Yi and others that were converted as it.
void describe_llama(const GgufSource& source, json::object& config) {
  config["attention_bias"] = source.has_tensor("blk.0.attn_q.bias");
  config["mlp_bias"] = source.has_tensor("blk.0.ffn_down.bias");
}

void describe_qwen3(const GgufSource& source, json::object& config) {
  config["attention_bias"] = source.has_tensor("blk.0.attn_q.bias");
}

// Scores are divided by the square root of this: a head's numbers, but in the largest model of each family.
void describe_gemma_scores(const GgufSource& source, std::uint64_t layers_of_largest, json::object& config) {
  const std::uint64_t per_head = source.require_uint("embedding_length") / source.heads();
  config["query_pre_attn_scalar"] = source.layers() == layers_of_largest ? per_head : source.head_dim();
}

void describe_gemma2(const GgufSource& source, json::object& config) {
  constexpr std::uint64_t kLayersOf27B = 46;
  describe_gemma_scores(source, kLayersOf27B, config);
  describe_window(source, config);
  copy_number(source, "attn_logit_softcapping", config, "attn_logit_softcapping");
  copy_number(source, "final_logit_softcapping", config, "final_logit_softcapping");
}

void describe_gemma3(const GgufSource& source, json::object& config) {
  constexpr std::uint64_t kLayersOf27B = 62;
  describe_gemma_scores(source, kLayersOf27B, config);
  describe_window(source, config);
  copy_number(source, "final_logit_softcapping", config, "final_logit_softcapping");
  config["rope_local_base_freq"] = source.number("rope.freq_base_swa").value_or(1e4);
  if (!source.number("rope.freq_base")) config["rope_theta"] = 1e6;
}

// Rows of the table of embeddings per layer; the sizes that Gemma 3n and 4 share.
void describe_per_layer(const GgufSource& source, json::object& config) {
  describe_windows(source, config);
  copy_number(source, "final_logit_softcapping", config, "final_logit_softcapping");
  if (!config.contains("final_logit_softcapping")) config["final_logit_softcapping"] = nullptr;
  config["num_kv_shared_layers"] = source.uint("attention.shared_kv_layers").value_or(0);
  config["hidden_size_per_layer_input"] = source.uint("embedding_length_per_layer_input").value_or(0);
  const GgufTensor* table = source.find("per_layer_token_embd.weight");
  if (table != nullptr && !table->shape.empty()) config["vocab_size_per_layer_input"] = table->shape.front();
}

// A share of a normal distribution from how many deviations lie above it.
double normal_share(double deviations) { return std::erfc(-deviations / std::sqrt(2.0)) / 2; }

void describe_gemma3n(const GgufSource& source, json::object& config) {
  describe_per_layer(source, config);
  config["intermediate_size"] = json::value_from(source.by_layer("feed_forward_length"));
  config["rope_local_base_freq"] = source.number("rope.freq_base_swa").value_or(1e4);
  config["altup_num_inputs"] = source.require_uint("altup.num_inputs");
  config["altup_active_idx"] = source.uint("altup.active_idx").value_or(0);
  config["altup_correct_scale"] = source.has_tensor("blk.0.altup_correct_scale.weight");
  const GgufTensor& laurel = source.require("blk.0.laurel_l.weight");
  config["laurel_rank"] = laurel.shape.empty() ? 0 : laurel.shape.front();
  json::array shares;
  for (const float deviations :
       source.file().numbers(source.key("activation_sparsity_scale")).value_or(std::vector<float>())) {
    shares.emplace_back(normal_share(deviations));
  }
  if (shares.empty()) shares.resize(source.layers(), 0.0);
  config["activation_sparsity_pattern"] = shares;
}

// Heads of full layers, whose frequencies have divisors: those of dimensions that do not turn are huge.
void describe_gemma4(const GgufSource& source, json::object& config) {
  describe_per_layer(source, config);
  const std::vector<bool> slides =
      source.flags("attention.sliding_window_pattern").value_or(std::vector<bool>(source.layers(), false));
  const std::vector<std::uint64_t> kv_heads = source.by_layer("attention.head_count_kv");
  const std::uint64_t full_dim = source.require_uint("attention.key_length");
  json::object heads;
  bool v_is_k = false;
  const std::uint64_t own_kv =
      source.layers() - std::min(source.layers(), config.at("num_kv_shared_layers").as_uint64());
  for (std::uint64_t layer = 0; layer < std::min<std::uint64_t>(source.layers(), slides.size()); ++layer) {
    if (slides[layer]) continue;
    json::object own{{"head_dim", full_dim}};
    if (!kv_heads.empty()) own["num_key_value_heads"] = kv_heads[layer];
    heads[std::to_string(layer)] = own;
    v_is_k = v_is_k || (layer < own_kv && !source.has_tensor(fmt::format("blk.{}.attn_v.weight", layer)));
  }
  config["per_layer_config"] = heads;
  config["attention_k_eq_v"] = v_is_k;
  config["head_dim"] = source.uint("attention.key_length_swa").value_or(full_dim);
  const std::vector<std::uint64_t> widths = source.by_layer("feed_forward_length");
  config["use_double_wide_mlp"] = !widths.empty() && widths.back() == 2 * widths.front();

  json::object full{{"rope_type", "proportional"}, {"partial_rotary_factor", 1.0}};
  if (const GgufTensor* divisors = source.find("rope_freqs.weight")) {
    constexpr float kNotTurned = 1e20f;
    const std::vector<float> numbers = source.numbers(*divisors);
    const auto turned = std::ranges::count_if(numbers, [](float divisor) { return divisor < kNotTurned; });
    full["partial_rotary_factor"] =
        static_cast<double>(turned) / static_cast<double>(std::max<std::size_t>(numbers.size(), 1));
  }
  full["rope_theta"] = source.number("rope.freq_base").value_or(1e6);
  const json::object sliding{{"rope_type", "default"},
                             {"rope_theta", source.number("rope.freq_base_swa").value_or(1e4)}};
  config.erase("rope_theta");
  config.erase("partial_rotary_factor");
  config["rope_parameters"] = {{"full_attention", full}, {"sliding_attention", sliding}};
}

void describe_phi3(const GgufSource& source, json::object& config) {
  describe_window(source, config);
  const GgufTensor* short_factors = source.find("rope_factors_short.weight");
  const GgufTensor* long_factors = source.find("rope_factors_long.weight");
  if (short_factors == nullptr || long_factors == nullptr) return;
  json::object scaling;
  scaling["rope_type"] = "longrope";
  scaling["short_factor"] = json::value_from(source.numbers(*short_factors));
  scaling["long_factor"] = json::value_from(source.numbers(*long_factors));
  copy_number(source, "rope.scaling.attn_factor", scaling, "attention_factor");
  config["rope_scaling"] = scaling;
  if (const auto original = source.uint("rope.scaling.original_context_length")) {
    config["original_max_position_embeddings"] = *original;
  }
}

void describe_granite(const GgufSource& source, json::object& config) {
  describe_llama(source, config);
  copy_number(source, "attention.scale", config, "attention_multiplier");
  copy_number(source, "embedding_scale", config, "embedding_multiplier");
  copy_number(source, "residual_scale", config, "residual_multiplier");
  copy_number(source, "logit_scale", config, "logits_scaling");
}

void describe_starcoder2(const GgufSource& source, json::object& config) {
  describe_window(source, config);
  config["use_bias"] = source.has_tensor("blk.0.attn_q.bias");
}

void describe_stablelm(const GgufSource& source, json::object& config) {
  config["use_qkv_bias"] = source.has_tensor("blk.0.attn_q.bias");
  config["use_parallel_residual"] = !source.has_tensor("blk.0.ffn_norm.weight");
  config["qk_layernorm"] = source.has_tensor("blk.0.attn_q_norm.weight");
}

void describe_cohere(const GgufSource& source, json::object& config) {
  copy_number(source, "logit_scale", config, "logit_scale");
  config["use_qk_norm"] = source.has_tensor("blk.0.attn_q_norm.weight");
  config["attention_bias"] = source.has_tensor("blk.0.attn_q.bias");
}

void describe_cohere2(const GgufSource& source, json::object& config) {
  describe_cohere(source, config);
  describe_window(source, config);
}

// Norms behind attention and MLP instead of before; those with a window are OLMo 3.
void describe_olmo2(const GgufSource& source, json::object& config) {
  config["attention_bias"] = source.has_tensor("blk.0.attn_q.bias");
  if (source.uint("attention.sliding_window").value_or(0) == 0) return;
  config["model_type"] = "olmo3";
  describe_windows(source, config);
}

void describe_exaone4(const GgufSource& source, json::object& config) { describe_windows(source, config); }

void describe_seed_oss(const GgufSource& source, json::object& config) {
  config["attention_bias"] = source.has_tensor("blk.0.attn_q.bias");
  config["attention_out_bias"] = source.has_tensor("blk.0.attn_output.bias");
  config["mlp_bias"] = source.has_tensor("blk.0.ffn_down.bias");
}

void describe_ernie4_5(const GgufSource& source, json::object& config) {
  config["use_bias"] = source.has_tensor("blk.0.attn_q.bias");
}

void describe_olmo(const GgufSource& source, json::object& config) {
  describe_llama(source, config);
  copy_number(source, "attention.clamp_kqv", config, "clip_qkv");
}

// Ministral 3; without a scale of q by position, Mistral.
void describe_mistral3(const GgufSource& source, json::object& config) {
  describe_window(source, config);
  const auto scale = source.number("attention.temperature_scale");
  json::value* scaling = config.if_contains("rope_scaling");
  if (!scale || scaling == nullptr) return;
  config["model_type"] = "ministral3";
  scaling->as_object()["llama_4_scaling_beta"] = *scale;
}

void describe_gpt_neox(const GgufSource& source, json::object& config) {
  config["use_parallel_residual"] = source.flag("use_parallel_residual").value_or(true);
  config["attention_bias"] = source.has_tensor("blk.0.attn_qkv.bias");
}

// Sizes under the keys of older families.
void rename_sizes(json::object& config, const std::pair<std::string_view, std::string_view> (&names)[5]) {
  for (const auto& [from, to] : names) config[to] = config.at(from);
}

void describe_gpt2(const GgufSource&, json::object& config) {
  rename_sizes(config, {{"hidden_size", "n_embd"},
                        {"num_hidden_layers", "n_layer"},
                        {"num_attention_heads", "n_head"},
                        {"intermediate_size", "n_inner"},
                        {"max_position_embeddings", "n_positions"}});
}

void describe_starcoder(const GgufSource& source, json::object& config) {
  describe_gpt2(source, config);
  config["multi_query"] = source.kv_heads() == 1;
}

void describe_bloom(const GgufSource&, json::object& config) {
  config["seq_length"] = config.at("max_position_embeddings");
}

void describe_mpt(const GgufSource& source, json::object& config) {
  rename_sizes(config, {{"hidden_size", "d_model"},
                        {"num_hidden_layers", "n_layers"},
                        {"num_attention_heads", "n_heads"},
                        {"intermediate_size", "ffn"},
                        {"max_position_embeddings", "max_seq_len"}});
  const double max_bias = source.number("attention.max_alibi_bias").value_or(0.0);
  json::object attention{{"alibi", max_bias != 0.0}};
  if (max_bias != 0.0) attention["alibi_bias_max"] = max_bias;
  copy_number(source, "attention.clamp_kqv", attention, "clip_qkv");
  config["attn_config"] = attention;
}

void describe_phi2(const GgufSource& source, json::object& config) {
  config["qk_layernorm"] = source.has_tensor("blk.0.attn_q_norm.weight");
}

// Several kv heads: 40B, 180B and 11B.
void describe_falcon(const GgufSource& source, json::object& config) {
  const bool two_norms = source.has_tensor("blk.0.attn_norm_2.weight");
  config["ffn_hidden_size"] = config.at("intermediate_size");
  config["num_kv_heads"] = source.kv_heads();
  config["multi_query"] = source.kv_heads() == 1;
  config["new_decoder_architecture"] = two_norms || source.kv_heads() != 1;
  config["num_ln_in_parallel_attn"] = two_norms ? 2 : 1;
  config["bias"] = source.has_tensor("blk.0.attn_qkv.bias");
}

void describe_chatglm(const GgufSource& source, json::object& config) {
  config["attention_bias"] = source.has_tensor("blk.0.attn_q.bias") || source.has_tensor("blk.0.attn_qkv.bias");
}

// Frequencies are scaled by a tensor, if at all.
void describe_apertus(const GgufSource& source, json::object& config) {
  describe_llama(source, config);
  if (!config.contains("rope_scaling")) config["rope_scaling"] = {{"rope_type", "default"}};
}

void describe_internlm2(const GgufSource& source, json::object& config) {
  config["bias"] = source.has_tensor("blk.0.attn_q.bias");
}

// The norm before the MLP has the name that it has in transformers.
void rename_mlp_norm(const GgufSource&, TensorNames& names) { names.mlp_norm = "post_attention_norm"; }

void rename_gemma4(const GgufSource&, TensorNames& names) {
  names.per_layer_embedding = "per_layer_token_embd";
  names.per_layer_projection = "per_layer_model_proj";
  names.per_layer_projection_norm = "per_layer_proj_norm";
  names.per_layer_gate = "inp_gate";
  names.per_layer_out = "proj";
  names.per_layer_norm = "post_norm";
  names.scale = "layer_output_scale.weight";
  // Beside experts the MLP is called as without.
  names.experts.shared_gate = names.gate;
  names.experts.shared_up = names.up;
  names.experts.shared_down = names.down;
}

void rename_gemma3n(const GgufSource& source, TensorNames& names) {
  rename_gemma4(source, names);
  names.stream_in = "altup_proj";
  names.stream_out = "altup_unembd_proj";
  names.router = "altup_router";
  names.router_norm = "altup_router_norm";
  names.prediction = "altup_predict_coef";
  names.correction = "altup_correct_coef";
  names.correction_scale = "altup_correct_scale.weight";
  names.laurel_left = "laurel_l";
  names.laurel_right = "laurel_r";
  names.laurel_norm = "laurel_post_norm";
}

void rename_falcon(const GgufSource& source, TensorNames& names) {
  if (!source.has_tensor("blk.0.attn_norm_2.weight")) return;
  names.input_norm = "attn_norm_2";
  names.mlp_norm = "attn_norm";
}

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama",
     .model_type = "llama",
     .in_pairs = true,
     .describe = describe_llama,
     .dense_too = true,
     .describe_experts = describe_mixtral},
    {.name = "qwen2", .model_type = "qwen2"},
    {.name = "qwen2vl", .model_type = "qwen2"},
    {.name = "qwen3", .model_type = "qwen3", .describe = describe_qwen3},
    {.name = "qwen3vl", .model_type = "qwen3", .describe = describe_qwen3},
    {.name = "mistral3", .model_type = "mistral", .in_pairs = true, .describe = describe_mistral3},
    {.name = "gemma", .model_type = "gemma", .adds_one = true},
    {.name = "gemma2", .model_type = "gemma2", .adds_one = true, .describe = describe_gemma2},
    {.name = "gemma3", .model_type = "gemma3_text", .adds_one = true, .describe = describe_gemma3},
    {.name = "gemma3n",
     .model_type = "gemma3n_text",
     .layers_differ = true,
     .describe = describe_gemma3n,
     .rename = rename_gemma3n},
    {.name = "gemma4",
     .model_type = "gemma4_text",
     .layers_differ = true,
     .reads_rope_freqs = true,
     .describe = describe_gemma4,
     .rename = rename_gemma4,
     .dense_too = true,
     .describe_experts = describe_gemma4_experts},
    {.name = "phi2", .model_type = "phi", .layer_norms = true, .describe = describe_phi2},
    {.name = "phi3", .model_type = "phi3", .describe = describe_phi3},
    {.name = "granite", .model_type = "granite", .in_pairs = true, .describe = describe_granite},
    {.name = "olmo", .model_type = "olmo", .in_pairs = true, .layer_norms = true, .describe = describe_olmo},
    {.name = "olmo2", .model_type = "olmo2", .describe = describe_olmo2},
    {.name = "smollm3", .model_type = "smollm3", .in_pairs = true, .describe = describe_llama},
    {.name = "arcee", .model_type = "arcee", .in_pairs = true, .describe = describe_llama},
    {.name = "apertus", .model_type = "apertus", .describe = describe_apertus},
    {.name = "internlm2", .model_type = "internlm2", .in_pairs = true, .describe = describe_internlm2},
    {.name = "seed_oss", .model_type = "seed_oss", .describe = describe_seed_oss, .rename = rename_mlp_norm},
    {.name = "exaone4", .model_type = "exaone4", .describe = describe_exaone4},
    {.name = "ernie4_5", .model_type = "ernie4_5", .describe = describe_ernie4_5},
    {.name = "hunyuan-dense", .model_type = "hunyuan_v1_dense", .describe = describe_qwen3},
    {.name = "nemotron", .model_type = "nemotron", .adds_one = true, .layer_norms = true, .describe = describe_llama},
    {.name = "starcoder", .model_type = "gpt_bigcode", .layer_norms = true, .describe = describe_starcoder},
    {.name = "starcoder2", .model_type = "starcoder2", .layer_norms = true, .describe = describe_starcoder2},
    {.name = "stablelm", .model_type = "stablelm", .layer_norms = true, .describe = describe_stablelm},
    {.name = "command-r", .model_type = "cohere", .layer_norms = true, .describe = describe_cohere},
    {.name = "cohere2", .model_type = "cohere2", .layer_norms = true, .describe = describe_cohere2},
    {.name = "chatglm", .model_type = "glm", .describe = describe_chatglm},
    {.name = "glm4", .model_type = "glm4", .describe = describe_chatglm},
    {.name = "gpt2", .model_type = "gpt2", .layer_norms = true, .describe = describe_gpt2},
    {.name = "gptneox", .model_type = "gpt_neox", .layer_norms = true, .describe = describe_gpt_neox},
    {.name = "bloom", .model_type = "bloom", .layer_norms = true, .describe = describe_bloom},
    {.name = "mpt", .model_type = "mpt", .layer_norms = true, .describe = describe_mpt},
    {.name = "falcon",
     .model_type = "falcon",
     .layer_norms = true,
     .describe = describe_falcon,
     .rename = rename_falcon},
    {.name = "qwen2moe", .model_type = "qwen2_moe", .describe_experts = describe_qwen2_moe},
    {.name = "qwen3moe", .model_type = "qwen3_moe", .describe = describe_qwen3, .describe_experts = describe_qwen3_moe},
    {.name = "qwen3vlmoe",
     .model_type = "qwen3_moe",
     .describe = describe_qwen3,
     .describe_experts = describe_qwen3_moe},
    {.name = "olmoe", .model_type = "olmoe", .describe = describe_qwen3, .describe_experts = describe_olmoe},
    {.name = "granitemoe",
     .model_type = "granitemoe",
     .in_pairs = true,
     .describe = describe_granite,
     .describe_experts = describe_granitemoe},
    {.name = "phimoe", .model_type = "phimoe", .describe = describe_phi3, .describe_experts = describe_phimoe},
    {.name = "ernie4_5-moe",
     .model_type = "ernie4_5_moe",
     .describe = describe_ernie4_5,
     .describe_experts = describe_ernie4_5_moe},
    {.name = "glm4moe",
     .model_type = "glm4_moe",
     .describe = describe_qwen3,
     .rename = rename_mlp_norm,
     .describe_experts = describe_glm4_moe},
    {.name = "dots1", .model_type = "dots1", .describe_experts = describe_dots1},
    {.name = "minimax-m2", .model_type = "minimax_m2", .describe_experts = describe_minimax_m2},
    {.name = "gpt-oss",
     .model_type = "gpt_oss",
     .describe = describe_qwen3,
     .rename = rename_gpt_oss,
     .describe_experts = describe_gpt_oss},
    {.name = "hunyuan-moe",
     .model_type = "hunyuan_v1_moe",
     .describe = describe_qwen3,
     .describe_experts = describe_hunyuan_moe},
    {.name = "deepseek2",
     .model_type = "deepseek_v2",
     .has_latent = true,
     .rename = rename_deepseek,
     .describe_experts = describe_deepseek},
    {.name = "hy_v3", .model_type = "hy_v3", .describe = describe_qwen3, .describe_experts = describe_hy_v3},
};

}  // namespace

const GgufArchitecture& architecture_of(const GgufSource& source) {
  const auto* found = std::ranges::find(kArchitectures, source.architecture(), &GgufArchitecture::name);
  if (found != std::end(kArchitectures)) return *found;
  std::string names;
  for (const GgufArchitecture& one : kArchitectures) names += (names.empty() ? "" : ", ") + std::string(one.name);
  source.file().refuse_key("general.architecture",
                           fmt::format("is '{}'; of GGUF files these are read: {}; other families in safetensors: "
                                       "`quire models`",
                                       log_safe(source.architecture()), names));
}

void copy_number(const GgufSource& source, std::string_view from, json::object& config, std::string_view to) {
  if (const auto value = source.number(from)) config[to] = *value;
}

}  // namespace quire::model
