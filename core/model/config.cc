#include "core/model/config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/log.h"
#include "core/base/start_error.h"
#include "core/model/json_fields.h"
#include "core/model/other_formats.h"
#include "core/model/rope.h"
#include "core/model/rope_config.h"

namespace quire::model {
namespace {

// What one architecture is, apart from its numbers.
struct Family {
  std::string_view model_type;
  std::string_view architecture;
  bool qkv_bias = false;            // always there, whatever attention_bias says
  bool attention_bias_key = false;  // attention_bias adds biases to q, k, v and o
  bool mlp_bias_key = false;
  bool qk_norm = false;
  bool layers_differ = false;     // use_sliding_window, max_window_layers: some layers may have a window, some none
  std::uint32_t head_dim = 0;     // where config.json has none; 0: hidden / heads
  bool kv_heads_required = true;  // where absent means something else than "as many as heads"
  std::uint32_t positions = 0;    // where config.json has no max_position_embeddings, as transformers has them
};

constexpr std::array<Family, 4> kFamilies = {{
    {.model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .attention_bias_key = true,
     .mlp_bias_key = true,
     .kv_heads_required = false,
     .positions = 2048},
    {.model_type = "mistral", .architecture = "MistralForCausalLM", .positions = 131072},
    {.model_type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .qkv_bias = true,
     .layers_differ = true,
     .positions = 32768},
    {.model_type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .attention_bias_key = true,
     .qk_norm = true,
     .layers_differ = true,
     .head_dim = 128,
     .positions = 32768},
}};

constexpr std::uint64_t kMaxWidth = 1u << 22;  // of hidden, ffn: products of two stay far below 2^64
constexpr std::uint64_t kMaxVocab = 1u << 20;  // as far as the sampler reaches
constexpr std::uint64_t kMaxHeads = 1u << 12;
constexpr std::uint64_t kMaxHeadDim = 1u << 10;
constexpr std::uint64_t kMaxLayers = 1u << 12;
constexpr std::uint64_t kMaxPositionsInConfig = (1u << 31) - 1;

std::uint32_t uint(const JsonFields& fields, std::string_view key, std::uint64_t high) {
  return static_cast<std::uint32_t>(fields.require_uint(key, 1, high));
}

const Family& find_family(const JsonFields& fields) {
  const std::string type = fields.optional_string("model_type").value_or("");
  const auto family =
      std::find_if(kFamilies.begin(), kFamilies.end(), [&](const Family& f) { return f.model_type == type; });
  if (family == kFamilies.end()) fields.mismatch("model_type", "expected one of llama, mistral, qwen2, qwen3");
  if (const auto names = fields.optional_strings("architectures"); names && !names->empty()) {
    const bool is_old = names->front() == "LLaMAForCausalLM" && type == "llama";  // as the first conversions spelled it
    if (names->size() != 1 || (names->front() != family->architecture && !is_old)) {
      fields.mismatch("architectures", "expected [\"" + std::string(family->architecture) + "\"]");
    }
  }
  return *family;
}

// Keys that change the arithmetic in ways the decoder does not have.
void refuse_unsupported(const JsonFields& fields, const Family& family) {
  for (const char* key : {"quantization_config", "compression_config", "quantization"}) {  // the last is MLX's
    if (!fields.has(key)) continue;
    const auto made = fields.optional_object(key);
    const std::string method = made ? made->optional_string("quant_method").value_or("") : "";
    const bool is_4 = made && made->optional_bool("load_in_4bit").value_or(false);  // bitsandbytes
    const bool is_8 = made && made->optional_bool("load_in_8bit").value_or(false);
    const std::uint64_t bits = is_4 ? 4 : is_8 ? 8 : made ? made->optional_uint("bits", 0, 64).value_or(0) : 0;
    const bool is_mlx = key == std::string_view("quantization");
    fields.refuse(key, "is set: " + explain_quantization(is_mlx ? "mlx" : method, bits));
  }
  const std::string act = fields.optional_string("hidden_act").value_or("silu");
  if (act != "silu" && act != "swish") fields.mismatch("hidden_act", "expected \"silu\"");
  if (fields.optional_number("partial_rotary_factor", -1e9, 1e9).value_or(1.0) != 1.0) {
    fields.mismatch("partial_rotary_factor", "expected 1: heads that are rotated in part are not supported");
  }
  if (!family.attention_bias_key && !family.qkv_bias && fields.optional_bool("attention_bias").value_or(false)) {
    fields.mismatch("attention_bias", "expected false: " + std::string(family.model_type) + " has no attention biases");
  }
  if (!family.mlp_bias_key && fields.optional_bool("mlp_bias").value_or(false)) {
    fields.mismatch("mlp_bias", "expected false: " + std::string(family.model_type) + " has no MLP biases");
  }
}

void read_shapes(const JsonFields& fields, const Family& family, Config& config) {
  config.hidden = uint(fields, "hidden_size", kMaxWidth);
  config.ffn = uint(fields, "intermediate_size", kMaxWidth);
  config.num_layers = uint(fields, "num_hidden_layers", kMaxLayers);
  config.num_heads = uint(fields, "num_attention_heads", kMaxHeads);
  config.vocab = uint(fields, "vocab_size", kMaxVocab);
  config.max_positions = static_cast<std::uint32_t>(
      fields.optional_uint("max_position_embeddings", 1, kMaxPositionsInConfig).value_or(family.positions));
  config.num_kv_heads = config.num_heads;
  if (fields.has("num_key_value_heads") || family.kv_heads_required) {
    config.num_kv_heads = uint(fields, "num_key_value_heads", config.num_heads);
  }
  if (config.num_heads % config.num_kv_heads != 0) {
    fields.mismatch("num_key_value_heads",
                    "expected a divisor of num_attention_heads = " + std::to_string(config.num_heads));
  }
  if (fields.has("head_dim")) {
    config.head_dim = uint(fields, "head_dim", kMaxHeadDim);
  } else if (family.head_dim != 0) {
    config.head_dim = family.head_dim;
  } else {
    if (config.hidden % config.num_heads != 0) {
      fields.mismatch("hidden_size", "expected a multiple of num_attention_heads = " +
                                         std::to_string(config.num_heads) + ", as there is no head_dim");
    }
    config.head_dim = config.hidden / config.num_heads;
  }
  if (config.head_dim % 2 != 0 || config.head_dim > kMaxHeadDim) {
    fields.refuse("head_dim", "(given, or hidden_size / num_attention_heads) is " + std::to_string(config.head_dim) +
                                  "; expected an even number up to " + std::to_string(kMaxHeadDim));
  }
}

// The window where a config has one at all; 0: none. An absent key means 4096, a null one none.
std::uint32_t window_of(const JsonFields& fields, const boost::json::object& object, const Family& family) {
  if (family.model_type == "llama") return 0;
  if (family.layers_differ && !fields.optional_bool("use_sliding_window").value_or(false)) return 0;
  if (object.if_contains("sliding_window") == nullptr) return 4096;
  return static_cast<std::uint32_t>(fields.optional_uint("sliding_window", 1, kMaxPositionsInConfig).value_or(0));
}

std::vector<std::uint32_t> read_windows(const JsonFields& fields, std::uint32_t window, const Family& family,
                                        std::uint32_t num_layers) {
  std::vector<std::uint32_t> windows(num_layers, window);
  if (family.layers_differ && window != 0) {
    const std::uint64_t full = fields.optional_uint("max_window_layers", 0, kMaxPositionsInConfig).value_or(28);
    std::fill_n(windows.begin(), std::min<std::uint64_t>(full, windows.size()), 0u);
  }
  const auto types = fields.optional_strings("layer_types");
  if (!types) return windows;
  if (types->size() != windows.size()) {
    fields.refuse("layer_types", "has " + std::to_string(types->size()) +
                                     " entries; expected num_hidden_layers = " + std::to_string(windows.size()));
  }
  for (std::size_t layer = 0; layer < windows.size(); ++layer) {
    const std::string& type = (*types)[layer];
    const bool sliding = type == "sliding_attention";
    if (!sliding && type != "full_attention") {
      fields.refuse("layer_types", "has \"" + log_safe(type) + "\" for layer " + std::to_string(layer) +
                                       "; expected full_attention or sliding_attention");
    }
    if (sliding && window == 0) {
      fields.refuse("layer_types",
                    "has sliding_attention for layer " + std::to_string(layer) + ", but no sliding window is set");
    }
    if (!family.layers_differ && sliding != (window != 0)) {
      fields.refuse("layer_types", "differs from sliding_window for layer " + std::to_string(layer) + "; " +
                                       std::string(family.model_type) + " has one kind of attention in all layers");
    }
    windows[layer] = sliding ? window : 0;
  }
  return windows;
}

std::string windows_text(const std::vector<std::uint32_t>& windows) {
  std::string text;
  for (std::size_t i = 0; i < windows.size();) {
    const auto end = std::find_if(windows.begin() + i, windows.end(), [&](std::uint32_t w) { return w != windows[i]; });
    const std::size_t run = static_cast<std::size_t>(end - windows.begin()) - i;
    if (!text.empty()) text += ",";
    text += std::to_string(windows[i]) + "*" + std::to_string(run);
    i += run;
  }
  return text;
}

}  // namespace

Config load_config(const ModelFiles& files) {
  const FileBytes bytes = files.require("config.json");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string name = files.describe("config.json");
  if (!parse_object(text, name).contains("model_type")) {  // as in the directories of other programs
    const std::string known = files.explain_missing("model.safetensors");
    if (!known.empty()) throw StartError(name + ": key 'model_type' is missing: " + known);
  }
  return parse_config(text, name);
}

Config parse_config(std::string_view text, const std::string& name) {
  const boost::json::object object = parse_object(text, name);
  const JsonFields fields(object, name);
  const Family& family = find_family(fields);
  refuse_unsupported(fields, family);

  Config config;
  config.model_type = family.model_type;
  config.architecture = family.architecture;
  read_shapes(fields, family, config);
  config.norm_eps = static_cast<float>(fields.optional_number("rms_norm_eps", 0.0, 1.0).value_or(1e-6));
  config.rope = read_rope(fields, config.max_positions);
  config.windows = read_windows(fields, window_of(fields, object, family), family, config.num_layers);
  config.tied_head = fields.optional_bool("tie_word_embeddings").value_or(false);
  const bool attention_bias = family.attention_bias_key && fields.optional_bool("attention_bias").value_or(false);
  config.qkv_bias = family.qkv_bias || attention_bias;
  config.out_bias = attention_bias;
  config.mlp_bias = family.mlp_bias_key && fields.optional_bool("mlp_bias").value_or(false);
  config.qk_norm = family.qk_norm;
  const std::vector<TokenId> bos = fields.token_ids("bos_token_id", config.vocab);
  if (!bos.empty()) config.bos = bos.front();
  config.eos = fields.token_ids("eos_token_id", config.vocab);
  return config;
}

std::uint32_t Config::max_model_len() const {
  double positions = max_positions;
  if (rope.kind == RopeKind::kLinear) positions *= rope.factor;
  if (rope.kind == RopeKind::kYarn) positions = std::max(positions, rope.original_positions * rope.factor);
  return static_cast<std::uint32_t>(std::min<double>(std::floor(positions), kMaxRopePositions));
}

backend::KvShape Config::kv_shape(std::uint32_t block_tokens, std::uint32_t num_blocks, backend::KvType type) const {
  backend::KvShape shape;
  shape.num_layers = num_layers;
  shape.num_kv_heads = num_kv_heads;
  shape.head_dim = head_dim;
  shape.block_tokens = block_tokens;
  shape.num_blocks = num_blocks;
  shape.type = type;
  return shape;
}

std::string Config::describe() const {
  std::string flags;
  if (tied_head) flags += " tied";
  if (qkv_bias) flags += " qkv_bias";
  if (out_bias) flags += " out_bias";
  if (mlp_bias) flags += " mlp_bias";
  if (qk_norm) flags += " qk_norm";
  return model_type + " E=" + std::to_string(hidden) + " F=" + std::to_string(ffn) +
         " L=" + std::to_string(num_layers) + " H=" + std::to_string(num_heads) + " G=" + std::to_string(num_kv_heads) +
         " D=" + std::to_string(head_dim) + " V=" + std::to_string(vocab) + " eps=" + shortest(norm_eps) +
         " window=" + windows_text(windows) + flags + " rope=" + model::describe(rope);
}

}  // namespace quire::model
