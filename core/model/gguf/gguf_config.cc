#include "core/model/gguf/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/model/gguf/gguf_architectures.h"
#include "core/model/gguf/gguf_mixtures.h"
#include "core/model/gguf/gguf_source.h"

namespace quire::model {
namespace {

namespace json = boost::json;

void describe_rope(const GgufSource& source, json::object& config) {
  copy_number(source, "rope.freq_base", config, "rope_theta");
  const std::uint64_t head_dim = source.head_dim();
  if (head_dim == 0) source.file().refuse_key(source.key("embedding_length"), "is too small for the heads");
  const std::uint64_t turned = source.uint("rope.dimension_count").value_or(head_dim);
  config["partial_rotary_factor"] = static_cast<double>(turned) / static_cast<double>(head_dim);
  const auto type = source.file().text(source.key("rope.scaling.type"));
  if (!type || *type == "none" || *type == "longrope") return;
  json::object scaling;
  scaling["rope_type"] = *type;
  copy_number(source, "rope.scaling.factor", scaling, "factor");
  copy_number(source, "rope.scaling.yarn_attn_factor", scaling, "attention_factor");
  copy_number(source, "rope.scaling.yarn_beta_fast", scaling, "beta_fast");
  copy_number(source, "rope.scaling.yarn_beta_slow", scaling, "beta_slow");
  if (const auto all_dims = source.number("rope.scaling.yarn_log_multiplier")) {
    scaling["mscale"] = 1.0;
    scaling["mscale_all_dim"] = *all_dims;
  }
  if (const auto original = source.uint("rope.scaling.original_context_length")) {
    scaling["original_max_position_embeddings"] = *original;
  }
  config["rope_scaling"] = scaling;
}

// Texts of tokens that end an answer, and of tokens between files, which no answer has: llama.cpp knows them by these.
constexpr std::string_view kEndTexts[] = {"<|eot_id|>",
                                          "<|im_end|>",
                                          "<|end|>",
                                          "<|return|>",
                                          "<|call|>",
                                          "<|flush|>",
                                          "<|calls|>",
                                          "<end_of_turn>",
                                          "<turn|>",
                                          "<|tool_response>",
                                          "<eos>",
                                          "<|endoftext|>",
                                          "<|eom_id|>",
                                          "</s>",
                                          "<EOT>",
                                          "_<EOT>",
                                          "[EOT]",
                                          "<|end_of_text|>",
                                          "<end_of_utterance>",
                                          "<｜end▁of▁sentence｜>",
                                          "[EOS]",
                                          "[e~[",
                                          "<|END_OF_TURN_TOKEN|>",
                                          "<|fim_pad|>",
                                          "<fim-pad>",
                                          "<fim_pad>",
                                          "<|fim_repo|>",
                                          "<|repo_name|>",
                                          "<fim-repo>",
                                          "<reponame>",
                                          "<|file_sep|>"};

// Tokens that end an answer: those of the metadata, and those that llama.cpp knows by their text.
json::array end_tokens(const GgufSource& source) {
  std::set<std::uint64_t> ends;
  for (const char* name : {"eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep"}) {
    if (const auto id = source.file().uint(fmt::format("tokenizer.ggml.{}_token_id", name))) ends.insert(*id);
  }
  const auto tokens = source.file().texts("tokenizer.ggml.tokens");
  const auto types = source.file().integers("tokenizer.ggml.token_type");
  std::map<std::string_view, std::uint64_t> known;  // by text
  for (std::size_t id = 0; tokens && types && id < std::min(tokens->size(), types->size()); ++id) {
    constexpr std::int64_t kControl = 3;
    constexpr std::int64_t kUserDefined = 4;
    const bool is_special = (*types)[id] == kControl || (*types)[id] == kUserDefined;
    if (is_special && std::ranges::find(kEndTexts, (*tokens)[id]) != std::end(kEndTexts)) known[(*tokens)[id]] = id;
  }
  // gpt-oss and Solar end a message with <|end|>, and the answer goes on; to Gemma 4 </s> is a token like others.
  const auto has = [&](std::string_view text) { return known.contains(text); };
  if ((has("<|return|>") && has("<|call|>")) || (has("<|calls|>") && has("<|flush|>"))) known.erase("<|end|>");
  if (has("<|tool_response>")) known.erase("</s>");
  for (const auto& [text, id] : known) ends.insert(id);
  return json::value_from(ends).as_array();
}

// The frequency of each pair of dimensions has a divisor of its own.
void divide_frequencies(const GgufSource& source, ModelSpec& spec) {
  const GgufTensor& divisors = source.require("rope_freqs.weight");
  const std::vector<float> factors = source.numbers(divisors);
  for (RopeConfig& rope : spec.ropes) {
    const std::uint32_t pairs = rope.rotary_dims(spec.layers.front().attention.head_dim) / 2;
    if (factors.size() != pairs) {
      source.refuse_tensor(divisors,
                           fmt::format("has {} numbers; expected {}, one for each pair of dimensions that turns",
                                       factors.size(), pairs));
    }
    if (std::ranges::any_of(factors, [](float factor) { return factor < 1e-6f || factor > 1e9f; })) {
      source.refuse_tensor(divisors, "has a number outside [1e-6, 1e9]");
    }
    rope.kind = RopeKind::kLongRope;
    rope.short_factors.assign(factors.begin(), factors.end());
    rope.long_factors = rope.short_factors;
    rope.original_positions = spec.max_positions;
    rope.attention_factor = 1.0;
    rope.is_long = false;
  }
}

// The first layer's, which is that of all unless the architecture's layers differ.
std::uint64_t number_of_all_layers(const GgufSource& source, const GgufArchitecture& architecture,
                                   std::string_view name) {
  const std::vector<std::uint64_t> numbers = source.by_layer(name);
  if (numbers.empty()) source.file().refuse_key(source.key(name), "is missing");
  if (!architecture.layers_differ && std::ranges::count(numbers, numbers.front()) != std::ssize(numbers)) {
    source.file().refuse_key(source.key(name), "differs from layer to layer");
  }
  return numbers.front();
}

void add_experts(const GgufSource& source, const GgufArchitecture& architecture, json::object& config) {
  const bool has_experts = source.uint("expert_count").value_or(0) != 0;
  if (architecture.describe_experts == nullptr && has_experts) {
    source.file().refuse_key(source.key("expert_count"), "says that this model has experts, which are not read");
  }
  if (architecture.describe_experts == nullptr || (architecture.dense_too && !has_experts)) return;
  architecture.describe_experts(source, config);
}

}  // namespace

std::string gguf_config_json(const GgufSet& set) {
  const GgufSource source(set);
  const GgufArchitecture& architecture = architecture_of(source);
  const GgufTensor& embedding = source.require("token_embd.weight");
  json::object config;
  config["model_type"] = architecture.model_type;
  config["vocab_size"] = embedding.shape.empty() ? 0 : embedding.shape.front();
  config["hidden_size"] = source.require_uint("embedding_length");
  config["num_hidden_layers"] = source.layers();
  config["num_attention_heads"] = source.heads();
  config["num_key_value_heads"] = source.kv_heads();
  if (source.file().has(source.key("attention.head_count_kv"))) {
    number_of_all_layers(source, architecture, "attention.head_count_kv");
  }
  config["intermediate_size"] = number_of_all_layers(source, architecture, "feed_forward_length");
  config["max_position_embeddings"] = source.require_uint("context_length");
  if (const auto length = source.uint("attention.key_length"); length && !architecture.has_latent) {
    if (source.uint("attention.value_length").value_or(*length) != *length) {
      source.file().refuse_key(source.key("attention.value_length"), "differs from attention.key_length");
    }
  }
  config["head_dim"] = source.head_dim();
  if (architecture.layer_norms) {
    for (const char* key : {"layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"}) {
      copy_number(source, "attention.layer_norm_epsilon", config, key);
    }
  } else {
    copy_number(source, "attention.layer_norm_rms_epsilon", config, "rms_norm_eps");
  }
  config["tie_word_embeddings"] = !source.has_tensor("output.weight");
  describe_rope(source, config);
  if (architecture.describe != nullptr) architecture.describe(source, config);
  add_experts(source, architecture, config);
  config["eos_token_id"] = end_tokens(source);
  if (const auto bos = source.file().uint("tokenizer.ggml.bos_token_id")) config["bos_token_id"] = *bos;
  return json::serialize(config);
}

std::string gguf_generation_config_json(const GgufSet& set) {
  constexpr std::pair<const char*, const char*> kKeys[] = {{"general.sampling.temp", "temperature"},
                                                           {"general.sampling.top_p", "top_p"},
                                                           {"general.sampling.min_p", "min_p"},
                                                           {"general.sampling.penalty_repeat", "repetition_penalty"}};
  const GgufFile& file = set.metadata();
  json::object out;
  for (const auto& [from, to] : kKeys) {
    const auto value = file.number(from);
    if (!value) continue;
    if (!std::isfinite(*value)) file.refuse_key(from, "is not finite");
    out[to] = *value;
  }
  if (const auto top_k = file.integer("general.sampling.top_k")) out["top_k"] = *top_k;
  return json::serialize(out);
}

std::vector<GgufNumber> numbers_in_metadata(const GgufSet& set) {
  const GgufSource source(set);
  std::vector<GgufNumber> out;
  if (source.architecture() != "apertus") return out;
  for (const char* name : {"alpha_p", "alpha_n", "beta", "eps"}) {
    const std::string key = fmt::format("xielu.{}", name);
    const auto values = source.file().numbers(key);
    if (!values || values->size() != source.layers()) {
      source.file().refuse_key(key, fmt::format("has {} numbers; expected one for each of {} layers",
                                                values ? values->size() : 0, source.layers()));
    }
    const bool in_array = std::string_view(name).starts_with("alpha");
    for (std::size_t layer = 0; layer < values->size(); ++layer) {
      if (!std::isfinite((*values)[layer])) source.file().refuse_key(key, "is not finite");
      out.push_back({fmt::format("blk.{}.{}", layer, key),
                     in_array ? std::vector<std::uint64_t>{1} : std::vector<std::uint64_t>{}, (*values)[layer]});
    }
  }
  return out;
}

void fit_to_gguf(const GgufSet& set, ModelSpec& spec) {
  const GgufSource source(set);
  const GgufArchitecture& architecture = architecture_of(source);
  TensorNames names;
  names.input_norm = "attn_norm";
  names.q = "attn_q";
  names.k = "attn_k";
  names.v = "attn_v";
  names.q_norm = "attn_q_norm";
  names.k_norm = "attn_k_norm";
  names.out = "attn_output";
  names.attention_norm = "post_attention_norm";
  names.mlp_norm = "ffn_norm";
  names.gate = "ffn_gate";
  names.up = "ffn_up";
  names.down = "ffn_down";
  names.mlp_out_norm = "post_ffw_norm";
  names.xielu = "xielu";
  names.prefix = "";
  names.embedding = "token_embd";
  names.embedding_norm = "token_embd_norm";
  names.positions = "position_embd";
  names.layers = "blk";
  names.final_norm = "output_norm";
  names.head = "output";
  names.skipped = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"};
  if (source.has_tensor("blk.0.attn_qkv.weight")) names.qkv = "attn_qkv";
  const auto dense = std::ranges::find_if(spec.layers, [](const LayerSpec& layer) { return !layer.experts; });
  if (dense != spec.layers.end() && dense->mlp.gated &&
      !source.has_tensor(fmt::format("blk.{}.ffn_gate.weight", dense - spec.layers.begin()))) {
    names.gate_up = "ffn_up";
  }
  names.experts = gguf_expert_names(source);
  for (std::uint64_t block = source.layers(); block < source.blocks(); ++block) {
    names.skipped.push_back(fmt::format("blk.{}.*", block));
  }
  if (architecture.rename != nullptr) architecture.rename(source, names);
  spec.names = std::move(names);
  if (architecture.adds_one) spec.norm_offset = 0.0f;
  if (architecture.in_pairs) {
    for (LayerSpec& layer : spec.layers) layer.attention.interleaved = true;
  }
  if (source.has_tensor("rope_freqs.weight") && !architecture.reads_rope_freqs) divide_frequencies(source, spec);
}

}  // namespace quire::model
