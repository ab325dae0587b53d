#include "core/model/gguf/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::model {
namespace {

namespace json = boost::json;

// The metadata of the set's architecture.
class Source {
 public:
  explicit Source(const GgufSet& set) : set_(set), file_(set.metadata()) {
    const auto name = file_.text("general.architecture");
    if (!name) file_.refuse_key("general.architecture", "is missing: this is no model");
    architecture_ = *name;
  }

  const std::string& architecture() const { return architecture_; }
  const GgufFile& file() const { return file_; }
  std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }
  std::optional<std::uint64_t> uint(std::string_view name) const { return file_.uint(key(name)); }
  std::uint64_t require_uint(std::string_view name) const {
    const auto value = uint(name);
    if (!value) file_.refuse_key(key(name), "is missing");
    return *value;
  }
  std::optional<double> number(std::string_view name) const { return file_.number(key(name)); }
  bool has_tensor(std::string_view name) const { return set_.find(name) != nullptr; }
  const GgufTensor* find(std::string_view name) const { return set_.find(name); }
  const GgufTensor& require(std::string_view name) const {
    const GgufTensor* tensor = set_.find(name);
    if (tensor == nullptr) {
      throw StartError(fmt::format("{}: tensor '{}' is missing", file_.name(), name));
    }
    return *tensor;
  }
  std::uint64_t layers() const { return require_uint("block_count"); }
  std::uint64_t head_dim() const {
    return uint("attention.key_length")
        .value_or(require_uint("embedding_length") / require_uint("attention.head_count"));
  }
  // A tensor of f32.
  std::vector<float> numbers(const GgufTensor& tensor) const {
    if (tensor.dtype != "F32") {
      throw StartError(
          fmt::format("{}: tensor '{}' has type {}; expected F32", file_.name(), tensor.name, tensor.dtype));
    }
    std::vector<float> out(tensor.data.size() / sizeof(float));
    std::memcpy(out.data(), tensor.data.data(), out.size() * sizeof(float));
    return out;
  }

 private:
  const GgufSet& set_;
  const GgufFile& file_;
  std::string architecture_;
};

struct GgufArchitecture {
  std::string_view name;
  std::string_view model_type;
  bool in_pairs = false;  // the rows of q and k that turn together are neighbours
  bool adds_one = false;  // a norm's scale is stored as 1 + w
  bool layer_norms = false;
  void (*describe)(const Source& source, json::object& config) = nullptr;
  void (*rename)(TensorNames& names) = nullptr;
};

void copy_number(const Source& source, std::string_view from, json::object& config, std::string_view to) {
  if (const auto value = source.number(from)) config[to] = *value;
}

void describe_window(const Source& source, json::object& config) {
  if (const auto window = source.uint("attention.sliding_window"); window && *window != 0) {
    config["sliding_window"] = *window;
  } else {
    config["sliding_window"] = nullptr;
  }
}

// llama: Llama, and Mistral, SmolLM2, Yi and others that were converted as it.
void describe_llama(const Source& source, json::object& config) {
  config["attention_bias"] = source.has_tensor("blk.0.attn_q.bias");
  config["mlp_bias"] = source.has_tensor("blk.0.ffn_down.bias");
}

void describe_qwen3(const Source& source, json::object& config) {
  config["attention_bias"] = source.has_tensor("blk.0.attn_q.bias");
}

// Scores are divided by the square root of this: a head's numbers, but in the largest model of each family.
void describe_gemma_scores(const Source& source, std::uint64_t layers_of_largest, json::object& config) {
  const std::uint64_t per_head = source.require_uint("embedding_length") / source.require_uint("attention.head_count");
  config["query_pre_attn_scalar"] = source.layers() == layers_of_largest ? per_head : source.head_dim();
}

void describe_gemma2(const Source& source, json::object& config) {
  constexpr std::uint64_t kLayersOf27B = 46;
  describe_gemma_scores(source, kLayersOf27B, config);
  describe_window(source, config);
  copy_number(source, "attn_logit_softcapping", config, "attn_logit_softcapping");
  copy_number(source, "final_logit_softcapping", config, "final_logit_softcapping");
}

void describe_gemma3(const Source& source, json::object& config) {
  constexpr std::uint64_t kLayersOf27B = 62;
  describe_gemma_scores(source, kLayersOf27B, config);
  describe_window(source, config);
  copy_number(source, "final_logit_softcapping", config, "final_logit_softcapping");
  config["rope_local_base_freq"] = source.number("rope.freq_base_swa").value_or(1e4);
  if (!source.number("rope.freq_base")) config["rope_theta"] = 1e6;
}

void describe_phi3(const Source& source, json::object& config) {
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

void describe_granite(const Source& source, json::object& config) {
  describe_llama(source, config);
  copy_number(source, "attention.scale", config, "attention_multiplier");
  copy_number(source, "embedding_scale", config, "embedding_multiplier");
  copy_number(source, "residual_scale", config, "residual_multiplier");
  copy_number(source, "logit_scale", config, "logits_scaling");
}

void describe_starcoder2(const Source& source, json::object& config) {
  describe_window(source, config);
  config["use_bias"] = source.has_tensor("blk.0.attn_q.bias");
}

void describe_stablelm(const Source& source, json::object& config) {
  config["use_qkv_bias"] = source.has_tensor("blk.0.attn_q.bias");
  config["use_parallel_residual"] = !source.has_tensor("blk.0.ffn_norm.weight");
  config["qk_layernorm"] = source.has_tensor("blk.0.attn_q_norm.weight");
}

void describe_cohere(const Source& source, json::object& config) {
  copy_number(source, "logit_scale", config, "logit_scale");
  config["use_qk_norm"] = source.has_tensor("blk.0.attn_q_norm.weight");
  config["attention_bias"] = source.has_tensor("blk.0.attn_q.bias");
}

void describe_cohere2(const Source& source, json::object& config) {
  describe_cohere(source, config);
  describe_window(source, config);
}

void describe_glm4(const Source& source, json::object& config) {
  config["attention_bias"] = source.has_tensor("blk.0.attn_q.bias");
}

void rename_fused(TensorNames& names) {
  names.qkv = "attn_qkv";
  names.gate_up = "ffn_up";
}
void rename_gate_up(TensorNames& names) {
  names.gate_up = "ffn_up";
  names.mlp_norm = "ffn_norm";
}
void rename_mlp_norm_of_two(TensorNames& names) { names.mlp_norm = "ffn_norm"; }

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama", .model_type = "llama", .in_pairs = true, .describe = describe_llama},
    {.name = "qwen2", .model_type = "qwen2"},
    {.name = "qwen3", .model_type = "qwen3", .describe = describe_qwen3},
    {.name = "gemma", .model_type = "gemma", .adds_one = true},
    {.name = "gemma2",
     .model_type = "gemma2",
     .adds_one = true,
     .describe = describe_gemma2,
     .rename = rename_mlp_norm_of_two},
    {.name = "gemma3",
     .model_type = "gemma3_text",
     .adds_one = true,
     .describe = describe_gemma3,
     .rename = rename_mlp_norm_of_two},
    {.name = "phi3", .model_type = "phi3", .describe = describe_phi3, .rename = rename_fused},
    {.name = "granite", .model_type = "granite", .in_pairs = true, .describe = describe_granite},
    {.name = "olmo2", .model_type = "olmo2"},
    {.name = "smollm3", .model_type = "smollm3", .in_pairs = true, .describe = describe_llama},
    {.name = "starcoder2", .model_type = "starcoder2", .layer_norms = true, .describe = describe_starcoder2},
    {.name = "stablelm", .model_type = "stablelm", .layer_norms = true, .describe = describe_stablelm},
    {.name = "command-r", .model_type = "cohere", .layer_norms = true, .describe = describe_cohere},
    {.name = "cohere2", .model_type = "cohere2", .layer_norms = true, .describe = describe_cohere2},
    {.name = "glm4", .model_type = "glm4", .describe = describe_glm4, .rename = rename_gate_up},
};

const GgufArchitecture& architecture_of(const Source& source) {
  const auto* found = std::ranges::find(kArchitectures, source.architecture(), &GgufArchitecture::name);
  if (found != std::end(kArchitectures)) return *found;
  std::string names;
  for (const GgufArchitecture& one : kArchitectures) names += (names.empty() ? "" : ", ") + std::string(one.name);
  source.file().refuse_key("general.architecture",
                           fmt::format("is '{}'; of GGUF files these are read: {}; other families in safetensors: "
                                       "`quire models`",
                                       log_safe(source.architecture()), names));
}

void describe_rope(const Source& source, json::object& config) {
  copy_number(source, "rope.freq_base", config, "rope_theta");
  const std::uint64_t turned = source.uint("rope.dimension_count").value_or(source.head_dim());
  if (turned != source.head_dim()) {
    config["partial_rotary_factor"] = static_cast<double>(turned) / static_cast<double>(source.head_dim());
  }
  const auto type = source.file().text(source.key("rope.scaling.type"));
  if (!type || *type == "none" || *type == "longrope") return;
  json::object scaling;
  scaling["rope_type"] = *type;
  copy_number(source, "rope.scaling.factor", scaling, "factor");
  copy_number(source, "rope.scaling.yarn_attn_factor", scaling, "attention_factor");
  copy_number(source, "rope.scaling.yarn_beta_fast", scaling, "beta_fast");
  copy_number(source, "rope.scaling.yarn_beta_slow", scaling, "beta_slow");
  if (const auto original = source.uint("rope.scaling.original_context_length")) {
    scaling["original_max_position_embeddings"] = *original;
  }
  config["rope_scaling"] = scaling;
}

// Tokens that end an answer: those of the metadata, and those that llama.cpp knows by their text.
json::array end_tokens(const Source& source) {
  constexpr std::string_view kTexts[] = {"<|eot_id|>",
                                         "<|im_end|>",
                                         "<|end|>",
                                         "<|return|>",
                                         "<|call|>",
                                         "<end_of_turn>",
                                         "<turn|>",
                                         "<|endoftext|>",
                                         "<|eom_id|>",
                                         "</s>",
                                         "<EOT>",
                                         "<|end_of_text|>",
                                         "<｜end▁of▁sentence｜>",
                                         "[EOS]",
                                         "<|END_OF_TURN_TOKEN|>"};
  json::array out;
  const auto add = [&](std::uint64_t id) {
    if (std::ranges::find(out, json::value(id)) == out.end()) out.emplace_back(id);
  };
  for (const char* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    if (const auto id = source.file().uint(key)) add(*id);
  }
  const auto tokens = source.file().texts("tokenizer.ggml.tokens");
  const auto types = source.file().integers("tokenizer.ggml.token_type");
  for (std::size_t id = 0; tokens && types && id < std::min(tokens->size(), types->size()); ++id) {
    constexpr std::int64_t kControl = 3;
    if ((*types)[id] == kControl && std::ranges::find(kTexts, (*tokens)[id]) != std::end(kTexts)) add(id);
  }
  return out;
}

}  // namespace

std::string gguf_config_json(const GgufSet& set) {
  const Source source(set);
  const GgufArchitecture& architecture = architecture_of(source);
  const GgufTensor& embedding = source.require("token_embd.weight");
  json::object config;
  config["model_type"] = architecture.model_type;
  config["vocab_size"] = embedding.shape.empty() ? 0 : embedding.shape.front();
  config["hidden_size"] = source.require_uint("embedding_length");
  config["num_hidden_layers"] = source.layers();
  config["num_attention_heads"] = source.require_uint("attention.head_count");
  config["num_key_value_heads"] =
      source.uint("attention.head_count_kv").value_or(source.require_uint("attention.head_count"));
  config["intermediate_size"] = source.require_uint("feed_forward_length");
  config["max_position_embeddings"] = source.require_uint("context_length");
  if (const auto length = source.uint("attention.key_length")) {
    if (source.uint("attention.value_length").value_or(*length) != *length) {
      source.file().refuse_key(source.key("attention.value_length"), "differs from attention.key_length");
    }
    config["head_dim"] = *length;
  }
  if (architecture.layer_norms) {
    for (const char* key : {"layer_norm_eps", "norm_epsilon"}) {
      copy_number(source, "attention.layer_norm_epsilon", config, key);
    }
  } else {
    copy_number(source, "attention.layer_norm_rms_epsilon", config, "rms_norm_eps");
  }
  config["tie_word_embeddings"] = !source.has_tensor("output.weight");
  describe_rope(source, config);
  if (architecture.describe != nullptr) architecture.describe(source, config);
  config["eos_token_id"] = end_tokens(source);
  if (const auto bos = source.file().uint("tokenizer.ggml.bos_token_id")) config["bos_token_id"] = *bos;
  return json::serialize(config);
}

void fit_to_gguf(const GgufSet& set, ModelSpec& spec) {
  const Source source(set);
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
  names.prefix = "";
  names.embedding = "token_embd";
  names.layers = "blk";
  names.final_norm = "output_norm";
  names.head = "output";
  names.skipped = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"};
  if (architecture.rename != nullptr) architecture.rename(names);
  spec.names = std::move(names);
  if (architecture.adds_one) spec.norm_offset = 0.0f;
  if (architecture.in_pairs) {
    for (LayerSpec& layer : spec.layers) layer.attention.interleaved = true;
  }
  if (const GgufTensor* divisors = source.find("rope_freqs.weight")) {
    const std::vector<float> factors = source.numbers(*divisors);
    for (RopeConfig& rope : spec.ropes) {
      rope.kind = RopeKind::kLongRope;
      rope.short_factors.assign(factors.begin(), factors.end());
      rope.long_factors = rope.short_factors;
      rope.original_positions = spec.max_positions;
      rope.attention_factor = 1.0;
      rope.is_long = false;
    }
  }
}

}  // namespace quire::model
