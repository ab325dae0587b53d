// Parts of config.json that readers share: sizes with a family's defaults, activations, biases, windows by layer, RoPE.
// Thread  start.
// Fails   StartError naming file, key, the value found and the value expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/model/rope/rope_config.h"
#include "core/model/source/json_fields.h"
#include "core/model/spec.h"

namespace quire::model {

inline constexpr std::uint64_t kMaxWidth = 1u << 22;  // of hidden, ffn: products of two stay far below 2^64
inline constexpr std::string_view kNoKey = "";        // the family's config.json has none: its default holds

// Keys of sizes.
struct Keys {
  std::string_view hidden = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view kv_heads = "num_key_value_heads";
  std::string_view mlp_width = "intermediate_size";
  std::string_view positions = "max_position_embeddings";
};

// Values of keys that a config.json may leave out.
struct FamilyDefaults {
  std::string_view model_type;
  Keys keys{};
  std::uint32_t positions = 2048;
  std::uint32_t vocab = 0;  // 0: required, as are the next two
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  bool kv_heads_of_heads = false;  // as many as query heads
  std::uint32_t head_dim = 0;      // 0: hidden / heads
  bool takes_head_dim = true;
  std::uint32_t hiddens_of_mlp = 0;  // the MLP's width in hidden sizes; 0: required
  bool tied = false;
  std::string_view eps_key = "rms_norm_eps";
  double eps = 1e-6;
  backend::NormKind norm = backend::NormKind::kRms;
  bool norm_bias = false;
  std::string_view activation_key = "hidden_act";
  std::string_view activation = "silu";
  bool takes_mxfp4 = false;   // matrices may be quantised so by quantization_config
  bool gelu_by_tanh = false;  // "gelu" means gelu_pytorch_tanh

  void set_layer_norms(std::string_view key_of_eps, bool biases = true) {
    eps_key = key_of_eps;
    eps = 1e-5;
    norm = backend::NormKind::kLayer;
    norm_bias = biases;
  }
};

// A model whose layers are all alike: placement kPre, no window, no RoPE settings yet. Refuses what no family has.
ModelSpec read_model(const JsonFields& fields, const FamilyDefaults& defaults);

// A flag that the family knows; `fallback` if it is absent.
bool read_flag(const JsonFields& fields, std::string_view key, bool fallback);
// attention_bias: of q, k, v and out; mlp_bias: of the MLP. Absent ones are false.
void set_biases(const JsonFields& fields, ModelSpec& spec);
// Refuses a bias that the family does not have: "attention biases".
void refuse_bias(const JsonFields& fields, std::string_view key, const ModelSpec& spec, std::string_view what);

// The window's width; an absent key: `fallback`, null: 0, none.
std::uint32_t read_window(const JsonFields& fields, std::uint32_t fallback);
// layer_types: true for layers that slide. Nothing if the key is absent.
std::optional<std::vector<bool>> read_sliding(const JsonFields& fields, std::size_t num_layers);
// Every `pattern`-th layer is full, the others slide.
std::vector<bool> sliding_pattern(std::size_t num_layers, std::uint32_t pattern);
// Sets the layers' windows. Sliding layers without a window are refused.
void set_windows(const JsonFields& fields, const std::vector<bool>& sliding, std::uint32_t window, ModelSpec& spec);

// One RoPE table for all layers.
void set_rope(const JsonFields& fields, const RopeDefaults& defaults, ModelSpec& spec);
// PositionScale of all layers by llama_4_scaling_beta among the RoPE settings, if it is there.
void set_position_scale(const JsonFields& fields, ModelSpec& spec);
// Tables 0 of full layers and 1 of sliding ones, by rope_parameters.{full_attention, sliding_attention}. Without them:
// rope_theta and rope_scaling of full layers, and `sliding` of the others.
void set_ropes_by_type(const JsonFields& fields, const RopeDefaults& full, const RopeConfig& sliding, ModelSpec& spec);

}  // namespace quire::model
