// A Hugging Face config.json as the decoder needs it: shapes, and which optional parts the architecture has.
// Covers  llama, mistral, qwen2, qwen3. What would change the arithmetic and is not implemented is refused by name.
// Shape   E hidden, F feed-forward, L layers, H query heads, G kv heads, D head size, V vocabulary. Ranges are checked,
//         so that every product of two fits 64 bits, and every width 32.
// Owner   a value; immutable once read.
// Fails   StartError naming the file, the key, what was found and what was expected.
// Source  transformers 5.23 configuration_{llama,mistral,qwen2,qwen3}.py for keys and defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/tensors.h"
#include "core/base/ids.h"
#include "core/model/model_files.h"

namespace quire::model {

// dynamic is kept apart from default only because it caps the length: up to there the two are the same numbers.
enum class RopeKind : std::uint8_t { kDefault, kLinear, kLlama3, kYarn, kDynamic };

const char* name_of(RopeKind kind);

// Both spellings, rope_scaling + rope_theta and rope_parameters, end up here.
struct RopeConfig {
  RopeKind kind = RopeKind::kDefault;
  double theta = 10000.0;
  double factor = 1.0;                     // linear, llama3, yarn, dynamic
  double low_freq_factor = 1.0;            // llama3
  double high_freq_factor = 4.0;           // llama3
  std::uint32_t original_positions = 0;    // llama3, yarn: the length the model was first trained with
  std::optional<double> attention_factor;  // yarn: multiplies cos and sin; absent: follows from factor and the mscales
  double beta_fast = 32.0;                 // yarn
  double beta_slow = 1.0;                  // yarn
  double mscale = 0.0;                     // yarn; 0: absent
  double mscale_all_dim = 0.0;             // yarn; 0: absent
  bool truncate = true;                    // yarn: the ramp's ends are rounded outwards to whole dimensions
};

struct Config {
  std::string architecture;         // "LlamaForCausalLM"
  std::string model_type;           // "llama"
  std::uint32_t hidden = 0;         // E
  std::uint32_t ffn = 0;            // F
  std::uint32_t num_layers = 0;     // L
  std::uint32_t num_heads = 0;      // H
  std::uint32_t num_kv_heads = 0;   // G, divides H
  std::uint32_t head_dim = 0;       // D, even; not always E / H
  std::uint32_t vocab = 0;          // V: rows of the embedding and width of the logits
  std::uint32_t max_positions = 0;  // max_position_embeddings
  float norm_eps = 1e-6f;
  RopeConfig rope;
  std::vector<std::uint32_t> windows;  // [L] how many positions a row sees, its own included; 0: all
  bool tied_head = false;              // the output matrix is the embedding
  bool qkv_bias = false;
  bool out_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;  // RMS norm over each q and k head before rope
  std::optional<TokenId> bos;
  std::vector<TokenId> eos;  // from config.json; generation_config.json has the last word

  // The longest sequence the rope settings are good for; --max-model-len may ask for less, never for more.
  std::uint32_t max_model_len() const;
  backend::KvShape kv_shape(std::uint32_t block_tokens, std::uint32_t num_blocks, backend::KvType type) const;
  // One line with everything that fixes the arithmetic, windows as width*layers, rope resolved: part of the numeric mode.
  std::string describe() const;
};

// "default(theta=10000)", "yarn(theta=1e+06,factor=4,…)": every number that has a say, shortest exact decimals.
std::string describe(const RopeConfig& rope);

// Reads config.json.
Config load_config(const ModelFiles& files);
// Same, from text; `name` is how errors call it.
Config parse_config(std::string_view text, const std::string& name);

// What generation_config.json says; absent keys stay absent. do_sample: false reads as temperature 0.
struct GenerationDefaults {
  std::vector<TokenId> eos;  // config.json's list where there is none of its own
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<std::int32_t> top_k;
  std::optional<float> repetition_penalty;
  std::optional<std::uint32_t> max_new_tokens;  // of a request that says nothing, and no limit of others
};

// Reads generation_config.json; a model without one has no defaults, and config.json's EOS list.
GenerationDefaults load_generation_defaults(const ModelFiles& files, const Config& config);
GenerationDefaults parse_generation_defaults(std::string_view text, const std::string& name, const Config& config);

}  // namespace quire::model
