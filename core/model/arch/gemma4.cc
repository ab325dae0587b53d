// Gemma 4 (dense) and Gemma 3n: Gemma 3's layers, in which full ones have heads of another width. The last layers may
// read K and V of earlier ones, and layers may have embeddings of their own (PLE). Gemma 3n has four residual streams
// (AltUp), and layers of few gates that are not 0.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/model/arch/families.h"
#include "core/model/arch/mixture.h"

namespace quire::model {
namespace {

constexpr std::uint64_t kMaxHeadDim = 1u << 10;

FamilyDefaults gemma4() {
  FamilyDefaults defaults;
  defaults.model_type = "gemma4_text";
  defaults.positions = 131072;
  defaults.vocab = 262144;
  defaults.heads = 8;
  defaults.kv_heads = 4;
  defaults.head_dim = 256;
  defaults.tied = true;
  defaults.activation_key = "hidden_activation";
  defaults.activation = "gelu_pytorch_tanh";
  return defaults;
}

// Every sixth layer is full, and the last one always.
std::vector<bool> sliding_layers(const JsonFields& fields, std::size_t num_layers) {
  std::vector<bool> sliding = read_sliding(fields, num_layers).value_or(sliding_pattern(num_layers, 6));
  sliding.back() = false;
  return sliding;
}

void set_heads(const JsonFields& fields, AttentionLayer& attention, std::string_view dim_key,
               std::string_view kv_heads_key) {
  if (const auto dim = fields.optional_uint(dim_key, 2, kMaxHeadDim)) {
    attention.head_dim = static_cast<std::uint32_t>(*dim);
    if (*dim % 2 != 0) fields.mismatch(dim_key, "expected an even number");
  }
  if (kv_heads_key.empty()) return;
  if (const auto heads = fields.optional_uint(kv_heads_key, 1, attention.num_heads)) {
    attention.num_kv_heads = static_cast<std::uint32_t>(*heads);
    if (attention.num_heads % *heads != 0) {
      fields.mismatch(kv_heads_key,
                      "expected a divisor of num_attention_heads = " + std::to_string(attention.num_heads));
    }
  }
}

// Heads of full layers: per_layer_config has them by layer, or two keys for all.
void set_heads_by_layer(const JsonFields& fields, bool v_is_k, ModelSpec& spec) {
  const auto by_layer = fields.optional_object("per_layer_config");
  for (std::size_t index = 0; index < spec.layers.size(); ++index) {
    AttentionLayer& attention = spec.layers[index].attention;
    const bool full = attention.window == 0;
    attention.v_is_k = v_is_k && full;
    if (by_layer) {
      const auto own = by_layer->optional_object(std::to_string(index));
      if (own) set_heads(*own, attention, "head_dim", "num_key_value_heads");
    } else if (full) {
      attention.head_dim = 512;
      set_heads(fields, attention, "global_head_dim", v_is_k ? "num_global_key_value_heads" : "");
    }
  }
}

// The last layers, `absent` of them if config.json does not say how many, read K and V of the last earlier layer of
// their kind.
void share_kv(const JsonFields& fields, std::size_t absent, ModelSpec& spec) {
  const std::size_t num_layers = spec.layers.size();
  const std::size_t shared = fields.optional_uint("num_kv_shared_layers", 0, num_layers - 1).value_or(absent);
  const bool double_wide = read_flag(fields, "use_double_wide_mlp", false);
  for (std::size_t index = num_layers - shared; index < num_layers; ++index) {
    LayerSpec& layer = spec.layers[index];
    std::size_t source = num_layers - shared;
    while (source > 0 && spec.layers[source - 1].attention.window != layer.attention.window) --source;
    if (source == 0) {
      fields.mismatch("num_kv_shared_layers", "expected a layer of each of layer_types before the last ones");
    }
    layer.attention.kv_source = static_cast<std::uint32_t>(source - 1);
    layer.attention.k_norm.reset();
    layer.attention.v_norm.reset();
    layer.attention.v_is_k = false;
    layer.attention.num_kv_heads = spec.layers[source - 1].attention.num_kv_heads;
    if (double_wide) layer.mlp.width *= 2;
  }
}

// least_vocab: the table has a row for each of so many tokens.
void set_per_layer_embeddings(const JsonFields& fields, std::uint32_t least_vocab, ModelSpec& spec) {
  const std::uint64_t width = fields.optional_uint("hidden_size_per_layer_input", 0, 1u << 16).value_or(256);
  if (width == 0) return;
  const std::uint64_t vocab =
      fields.optional_uint("vocab_size_per_layer_input", least_vocab, 1u << 20).value_or(262144);
  spec.per_layer = PerLayerEmbedding{static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(vocab)};
}

void refuse_others(const JsonFields& fields) {
  if (fields.optional_string("use_bidirectional_attention").value_or("") == "all") {
    fields.mismatch("use_bidirectional_attention", "expected null or vision: rows attend to earlier positions only");
  }
}

// Experts beside the MLP, each with norms of their own.
void set_experts_beside(const JsonFields& fields, ModelSpec& spec) {
  if (!read_flag(fields, "enable_moe_block", false)) return;
  MixtureSpec mixture = read_mixture(fields, spec, {});
  mixture.rule.normed = true;
  mixture.router_norm = mixture.expert_scales = mixture.own_norms = true;
  for (LayerSpec& layer : spec.layers) layer.experts = mixture;
  ExpertNames& names = spec.names.experts;
  names.router = "router.proj";
  names.gate = "experts.{}.gate_proj";
  names.up = "experts.{}.up_proj";
  names.down = "experts.{}.down_proj";
  names.all_gate_up = "experts.gate_up_proj";
  names.all_down = "experts.down_proj";
  names.layout = ExpertNames::Layout::kTogether;
  name_shared_expert("mlp", spec);
}

// x below which a share p of a normal distribution lies.
double normal_quantile(double p) {
  double low = -40.0;
  double high = 40.0;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < p ? low : high) = middle;
  }
  return high;
}

// intermediate_size and activation_sparsity_pattern, by layer.
void set_mlps(const JsonFields& fields, ModelSpec& spec) {
  const std::size_t num_layers = spec.layers.size();
  const auto by_layer = [&](std::string_view key, std::vector<double> numbers) {
    if (numbers.size() != num_layers) {
      fields.refuse(key, "has " + std::to_string(numbers.size()) +
                             " numbers; expected num_hidden_layers = " + std::to_string(num_layers));
    }
    return numbers;
  };
  const bool is_list = fields.is_array("intermediate_size");
  const std::vector<double> widths =
      is_list ? by_layer("intermediate_size", fields.numbers("intermediate_size", 1, 1u << 20))
              : std::vector<double>(
                    num_layers,
                    static_cast<double>(fields.optional_uint("intermediate_size", 1, 1u << 20).value_or(16384)));
  std::vector<double> zeros(num_layers);
  if (fields.has("activation_sparsity_pattern")) {
    zeros = by_layer("activation_sparsity_pattern", fields.numbers("activation_sparsity_pattern", 0.0, 0.999999));
  } else if (num_layers > 10) {
    std::fill_n(zeros.begin(), 10, 0.95);
  }
  for (std::size_t index = 0; index < num_layers; ++index) {
    FeedForward& mlp = spec.layers[index].mlp;
    mlp.width = static_cast<std::uint32_t>(widths[index]);
    if (zeros[index] > 0.0) mlp.cutoff = static_cast<float>(normal_quantile(zeros[index]));
  }
}

AltUpSpec read_altup(const JsonFields& fields) {
  AltUpSpec altup;
  if (fields.optional_uint("altup_active_idx", 0, 0).value_or(0) != 0)
    fields.mismatch("altup_active_idx", "expected 0");
  altup.streams = static_cast<std::uint32_t>(
      fields.optional_uint("altup_num_inputs", 1, backend::kMaxStreams).value_or(altup.streams));
  altup.laurel_rank =
      static_cast<std::uint32_t>(fields.optional_uint("laurel_rank", 1, 1u << 16).value_or(altup.laurel_rank));
  altup.scales = read_flag(fields, "altup_correct_scale", true);
  return altup;
}

}  // namespace

ModelSpec read_gemma3n(const JsonFields& fields) {
  FamilyDefaults defaults = gemma4();
  defaults.model_type = "gemma3n_text";
  defaults.positions = 32768;
  defaults.vocab = 262400;
  defaults.kv_heads = 2;
  defaults.keys.mlp_width = kNoKey;
  defaults.hiddens_of_mlp = 1;  // set_mlps() sets the widths
  ModelSpec spec = read_model(fields, defaults);
  set_mlps(fields, spec);
  const std::size_t num_layers = spec.layers.size();
  set_windows(fields, read_sliding(fields, num_layers).value_or(sliding_pattern(num_layers, 5)),
              read_window(fields, 512), spec);
  RopeConfig local;
  local.theta = fields.optional_number("rope_local_base_freq", 2.0, 1e15).value_or(10000.0);
  set_ropes_by_type(fields, {.theta = 1e6}, local, spec);
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.placement = Placement::kSandwich;
    layer.attention.scale = 1.0f;
    layer.attention.q_norm = layer.attention.k_norm = layer.attention.v_norm = HeadNormSpec{layer.norm};
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
  }
  share_kv(fields, /*absent=*/std::min<std::size_t>(15, num_layers - 1), spec);
  set_per_layer_embeddings(fields, 1, spec);
  if (!spec.per_layer) fields.mismatch("hidden_size_per_layer_input", "expected 1 or more");
  spec.altup = read_altup(fields);
  spec.embedding_scale = std::sqrt(static_cast<float>(spec.hidden));
  spec.names.mlp_norm = "pre_feedforward_layernorm";
  spec.logit_softcap = static_cast<float>(fields.optional_number("final_logit_softcapping", 0.0, 1e6).value_or(30.0));
  return spec;
}

ModelSpec read_gemma4(const JsonFields& fields) {
  refuse_others(fields);
  ModelSpec spec = read_model(fields, gemma4());
  set_windows(fields, sliding_layers(fields, spec.layers.size()), read_window(fields, 512), spec);
  RopeDefaults full;
  full.theta = 1e6;
  full.kind = RopeKind::kProportional;
  full.partial = true;
  full.rotary_fraction = fields.has("rope_parameters") ? 1.0 : 0.25;
  set_ropes_by_type(fields, full, RopeConfig{}, spec);
  const bool biased = read_flag(fields, "attention_bias", false);
  for (LayerSpec& layer : spec.layers) {
    layer.placement = Placement::kSandwich;
    layer.attention.scale = 1.0f;
    layer.attention.q_norm = layer.attention.k_norm = layer.attention.v_norm = HeadNormSpec{layer.norm};
    layer.attention.qkv_bias = layer.attention.out_bias = biased;
    layer.scaled = true;
  }
  set_heads_by_layer(fields, read_flag(fields, "attention_k_eq_v", false), spec);
  share_kv(fields, /*absent=*/0, spec);
  set_per_layer_embeddings(fields, spec.vocab, spec);
  set_experts_beside(fields, spec);
  spec.embedding_scale = std::sqrt(static_cast<float>(spec.hidden));
  spec.names.mlp_norm = "pre_feedforward_layernorm";
  spec.logit_softcap = static_cast<float>(fields.optional_number("final_logit_softcapping", 0.0, 1e6).value_or(0.0));
  return spec;
}

}  // namespace quire::model
