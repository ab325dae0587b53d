#include "core/model/arch/reading.h"

#include <algorithm>
#include <cmath>

#include "core/base/log.h"
#include "core/model/quantized/quantization.h"
#include "core/model/rope/rope_config.h"
#include "core/model/source/other_formats.h"

namespace quire::model {
namespace {

constexpr std::uint64_t kMaxVocab = 1u << 20;  // the sampler's limit
constexpr std::uint64_t kMaxHeads = 1u << 12;
constexpr std::uint64_t kMaxHeadDim = 1u << 10;
constexpr std::uint64_t kMaxLayers = 1u << 12;
constexpr std::uint64_t kMaxPositionsInConfig = (1u << 31) - 1;

std::uint32_t uint(const JsonFields& fields, std::string_view key, std::uint64_t high, std::uint32_t fallback = 0) {
  if (fallback != 0 && !fields.has(key)) return fallback;
  return static_cast<std::uint32_t>(fields.require_uint(key, 1, high));
}

// Refuses quantisation that the loader does not read, and that of experts in another family than theirs.
void refuse_quantized(const JsonFields& fields, const FamilyDefaults& defaults) {
  const auto quantization = read_quantization(fields);
  const bool is_mxfp4 = quantization && quantization->method == Quantization::Method::kMxfp4;
  if (is_mxfp4 && !defaults.takes_mxfp4) {
    fields.refuse("quantization_config", "is set: " + explain_quantization("mxfp4", 0));
  }
}

// transformers' names.
constexpr std::pair<std::string_view, backend::Activation> kActivations[] = {
    {"silu", backend::Activation::kSilu},
    {"swish", backend::Activation::kSilu},
    {"gelu", backend::Activation::kGelu},
    {"gelu_python", backend::Activation::kGelu},
    {"gelu_pytorch_tanh", backend::Activation::kGeluTanh},
    {"gelu_new", backend::Activation::kGeluTanh},
    {"gelu_fast", backend::Activation::kGeluTanh},
    {"gelu_accurate", backend::Activation::kGeluTanh},
    {"gelu_python_tanh", backend::Activation::kGeluTanh},
    {"relu", backend::Activation::kRelu},
    {"relu2", backend::Activation::kRelu2},
};

backend::Activation read_activation(const JsonFields& fields, const FamilyDefaults& defaults) {
  const std::string_view key = defaults.activation_key;
  const std::string name = fields.optional_string(key).value_or(std::string(defaults.activation));
  if (name == "gelu" && defaults.gelu_by_tanh) return backend::Activation::kGeluTanh;
  std::string known;
  for (const auto& [one, activation] : kActivations) {
    if (one == name) return activation;
    known += (known.empty() ? "" : ", ") + std::string(one);
  }
  fields.mismatch(key, "expected one of " + known);
}

std::uint32_t read_head_dim(const JsonFields& fields, const FamilyDefaults& defaults, std::uint32_t hidden,
                            std::uint32_t num_heads) {
  std::uint32_t head_dim = defaults.head_dim;
  if (defaults.takes_head_dim && fields.has("head_dim")) {
    head_dim = uint(fields, "head_dim", kMaxHeadDim);
  } else if (head_dim == 0) {
    if (hidden % num_heads != 0) {
      fields.mismatch(defaults.keys.hidden, "expected a multiple of " + std::string(defaults.keys.heads) + " = " +
                                                std::to_string(num_heads) + ", because head_dim is missing");
    }
    head_dim = hidden / num_heads;
  }
  if (head_dim % 2 != 0 || head_dim > kMaxHeadDim) {
    fields.refuse("head_dim", "(given, or hidden_size / num_attention_heads) is " + std::to_string(head_dim) +
                                  "; expected an even number up to " + std::to_string(kMaxHeadDim));
  }
  return head_dim;
}

AttentionLayer read_attention(const JsonFields& fields, const FamilyDefaults& defaults, std::uint32_t hidden) {
  AttentionLayer attention;
  attention.num_heads = uint(fields, defaults.keys.heads, kMaxHeads, defaults.heads);
  const std::uint32_t kv_heads = defaults.kv_heads_of_heads ? attention.num_heads : defaults.kv_heads;
  attention.num_kv_heads = uint(fields, defaults.keys.kv_heads, attention.num_heads, kv_heads);
  if (attention.num_heads % attention.num_kv_heads != 0) {
    fields.mismatch(defaults.keys.kv_heads, "expected a divisor of " + std::string(defaults.keys.heads) + " = " +
                                                std::to_string(attention.num_heads));
  }
  attention.head_dim = read_head_dim(fields, defaults, hidden, attention.num_heads);
  attention.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(attention.head_dim)));
  return attention;
}

// A rope turns pairs of dimensions, and longrope has a factor for each.
void check_rope(const JsonFields& fields, const RopeConfig& rope, std::uint32_t head_dim) {
  const std::uint32_t turned = rope.rotary_dims(head_dim);
  if (turned % 2 != 0 || turned == 0) {
    fields.refuse("partial_rotary_factor", "turns " + std::to_string(turned) + " of " + std::to_string(head_dim) +
                                               " dimensions; expected an even number");
  }
  if (rope.kind != RopeKind::kLongRope) return;
  for (const auto& [key, factors] :
       {std::pair{"short_factor", &rope.short_factors}, {"long_factor", &rope.long_factors}}) {
    if (factors->size() != turned / 2) {
      fields.refuse(key, "has " + std::to_string(factors->size()) + " numbers; expected " + std::to_string(turned / 2) +
                             ", one for each pair of dimensions that turns");
    }
  }
}

}  // namespace

ModelSpec read_model(const JsonFields& fields, const FamilyDefaults& defaults) {
  refuse_quantized(fields, defaults);
  ModelSpec spec;
  spec.model_type = defaults.model_type;
  spec.hidden = spec.embedding = uint(fields, defaults.keys.hidden, kMaxWidth);
  LayerSpec layer;
  layer.mlp.width = uint(fields, defaults.keys.mlp_width, kMaxWidth, defaults.hiddens_of_mlp * spec.hidden);
  layer.mlp.activation = read_activation(fields, defaults);
  const std::uint32_t num_layers = uint(fields, defaults.keys.layers, kMaxLayers);
  layer.attention = read_attention(fields, defaults, spec.hidden);
  spec.vocab = uint(fields, "vocab_size", kMaxVocab, defaults.vocab);
  spec.max_positions = uint(fields, defaults.keys.positions, kMaxPositionsInConfig, defaults.positions);
  const double eps = fields.optional_number(defaults.eps_key, 0.0, 1.0).value_or(defaults.eps);
  layer.norm = {defaults.norm, static_cast<float>(eps), defaults.norm_bias};
  spec.final_norm = layer.norm;
  spec.layers.assign(num_layers, layer);
  spec.tied_by_default = !fields.has("tie_word_embeddings");
  spec.tied_head = read_flag(fields, "tie_word_embeddings", defaults.tied);
  const std::vector<TokenId> bos = fields.token_ids("bos_token_id", spec.vocab);
  if (!bos.empty()) spec.bos = bos.front();
  spec.eos = fields.token_ids("eos_token_id", spec.vocab);
  return spec;
}

bool read_flag(const JsonFields& fields, std::string_view key, bool fallback) {
  return fields.optional_bool(key).value_or(fallback);
}

void set_biases(const JsonFields& fields, ModelSpec& spec) {
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
    layer.mlp.bias = read_flag(fields, "mlp_bias", false);
  }
}

void refuse_bias(const JsonFields& fields, std::string_view key, const ModelSpec& spec, std::string_view what) {
  if (read_flag(fields, key, false)) {
    fields.mismatch(key, "expected false: " + spec.model_type + " has no " + std::string(what));
  }
}

std::uint32_t read_window(const JsonFields& fields, std::uint32_t fallback) {
  if (!fields.has("sliding_window")) return fields.is_null("sliding_window") ? 0 : fallback;
  return static_cast<std::uint32_t>(fields.require_uint("sliding_window", 1, kMaxPositionsInConfig));
}

std::optional<std::vector<bool>> read_sliding(const JsonFields& fields, std::size_t num_layers) {
  const auto types = fields.optional_strings("layer_types");
  if (!types) return std::nullopt;
  if (types->size() != num_layers) {
    fields.refuse("layer_types", "has " + std::to_string(types->size()) +
                                     " entries; expected num_hidden_layers = " + std::to_string(num_layers));
  }
  std::vector<bool> sliding;
  for (std::size_t layer = 0; layer < num_layers; ++layer) {
    const std::string& type = (*types)[layer];
    sliding.push_back(type == "sliding_attention");
    if (!sliding.back() && type != "full_attention") {
      fields.refuse("layer_types", "has \"" + log_safe(type) + "\" for layer " + std::to_string(layer) +
                                       "; expected full_attention or sliding_attention");
    }
  }
  return sliding;
}

std::vector<bool> sliding_pattern(std::size_t num_layers, std::uint32_t pattern) {
  std::vector<bool> sliding;
  for (std::size_t layer = 0; layer < num_layers; ++layer) sliding.push_back((layer + 1) % pattern != 0);
  return sliding;
}

void set_windows(const JsonFields& fields, const std::vector<bool>& sliding, std::uint32_t window, ModelSpec& spec) {
  for (std::size_t layer = 0; layer < sliding.size(); ++layer) {
    if (sliding[layer] && window == 0) {
      fields.refuse("layer_types",
                    "has sliding_attention for layer " + std::to_string(layer) + ", but no sliding window is set");
    }
    spec.layers[layer].attention.window = sliding[layer] ? window : 0;
  }
}

void set_rope(const JsonFields& fields, const RopeDefaults& defaults, ModelSpec& spec) {
  spec.ropes = {read_rope(fields, spec.max_positions, defaults)};
  check_rope(fields, spec.ropes.front(), spec.layers.front().attention.head_dim);
}

void set_position_scale(const JsonFields& fields, ModelSpec& spec) {
  auto parameters = fields.optional_object("rope_scaling");
  if (!parameters || parameters->keys().empty()) parameters = fields.optional_object("rope_parameters");
  const auto beta = parameters ? parameters->optional_number("llama_4_scaling_beta", 0.0, 100.0) : std::nullopt;
  if (!beta) return;
  const std::uint64_t original = parameters->require_uint("original_max_position_embeddings", 1, kMaxPositionsInConfig);
  for (LayerSpec& layer : spec.layers) {
    layer.attention.q_scale = PositionScale{*beta, static_cast<std::uint32_t>(original)};
  }
}

void set_ropes_by_type(const JsonFields& fields, const RopeDefaults& full_defaults, const RopeConfig& sliding,
                       ModelSpec& spec) {
  const auto parameters = fields.optional_object("rope_parameters");
  const auto full = parameters ? parameters->optional_object("full_attention") : std::nullopt;
  const auto local = parameters ? parameters->optional_object("sliding_attention") : std::nullopt;
  if (parameters && !parameters->keys().empty() && (!full || !local)) {
    fields.refuse("rope_parameters", "has no full_attention and sliding_attention; expected settings of each");
  }
  if (full) {
    spec.ropes = {read_rope_parameters(fields, *full, spec.max_positions, full_defaults),
                  read_rope_parameters(fields, *local, spec.max_positions, {.theta = sliding.theta})};
  } else {
    spec.ropes = {read_rope(fields, spec.max_positions, full_defaults), sliding};
  }
  for (LayerSpec& layer : spec.layers) layer.attention.rope = layer.attention.window != 0 ? 1 : 0;
}

}  // namespace quire::model
