// Configuration of a draft head, read from its config.json: the values that the forward pass needs.
// Covers  EAGLE-1 and EAGLE-2 (one kind of weights) and EAGLE-3, in the files of the authors, of SpecForge, and of
//         `speculators` and vLLM, whose layer keys are nested one level deeper. An unknown key is rejected unless it is
//         known to be harmless: a head that is read wrongly still drafts, only badly.
// Shape   E hidden and F feed-forward of the head, H G D as the target's; V the target's vocabulary, Vd the head's own.
// Owner   a value; immutable once read.
// Fails   StartError with every problem of the file at once.
// Source  EAGLE (Li et al. 2024), EAGLE-2 (Li et al. 2024), EAGLE-3 (Li et al. 2025), and the keys of their files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend/tensors.h"
#include "core/model/arch/config.h"
#include "core/model/source/model_files.h"

namespace quire::speculate {

enum class HeadKind : std::uint8_t {
  // fc([embedding | the target's last state after its norm]) into a layer; the target's output matrix.
  kEagle,
  // A state alone into a layer with attention; its normed output is another state.
  kPrefix,
  // Embedding beside fc(three states of the target), or its last one after its norm, into a layer twice as wide; an
  // output matrix of its own.
  kEagle3,
};

const char* name_of(HeadKind kind);  // as in --speculative-config

struct HeadConfig {
  HeadKind kind = HeadKind::kEagle3;
  // Boundaries of the residual stream whose states it reads, concatenated: b is the input of layer b. Empty: the last
  // state after the norm.
  std::vector<std::uint32_t> boundaries{};
  std::uint32_t target_hidden = 0;  // of those states
  std::uint32_t hidden = 0;         // E
  std::uint32_t ffn = 0;            // F
  std::uint32_t num_layers = 1;
  std::uint32_t num_heads = 0;
  std::uint32_t num_kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t vocab = 0;        // V
  std::uint32_t draft_vocab = 0;  // Vd
  float norm_eps = 1e-6f;
  float logit_scale = 1.0f;
  model::RopeConfig rope{};           // without a rope_theta: 10000, whatever the target's
  bool attention_bias = false;        // true: q, k, v and o must have biases; false: they may
  bool mlp_bias = false;              // likewise
  bool norm_before_fc = false;        // the states are normed as one vector
  bool fc_norm = false;               // each state is normed by itself
  bool norm_before_residual = false;  // the layer adds to the normed feature, not to the feature
  bool norm_output = false;           // the next feature is the output after the final norm

  backend::KvShape kv_shape(std::uint32_t block_tokens, std::uint32_t num_blocks, backend::KvType type) const;
  // True if an fc makes one feature of several states; else the last state is the feature.
  bool fuses_states() const { return kind == HeadKind::kEagle3 && !boundaries.empty(); }
  std::uint32_t states_width() const {
    return target_hidden * (boundaries.empty() ? 1 : static_cast<std::uint32_t>(boundaries.size()));
  }
};

HeadConfig load_head_config(const model::ModelFiles& files, const model::ModelSpec& target);
// The same from text; `name` is the file's name in errors.
HeadConfig parse_head_config(std::string_view text, const std::string& name, const model::ModelSpec& target);

}  // namespace quire::speculate
