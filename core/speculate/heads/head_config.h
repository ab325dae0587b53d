// A draft head's config.json, whoever published it, as one record: what the forward pass asks and nothing else.
// Covers  EAGLE-1 and EAGLE-2 (one kind of weights), EAGLE-3: the authors' own files, SpecForge's, and those of `speculators`,
//         whose layer stands one level deeper. A key that is not known to be harmless is refused: a head that is read wrongly
//         still guesses, only badly.
// Shape   E hidden and F feed-forward of the head, H G D as the target's; V the target's vocabulary, Vd the head's own.
// Owner   a value; immutable once read.
// Fails   StartError: every problem of the file at once.
// Source  EAGLE (Li et al. 2024), EAGLE-2 (Li et al. 2024), EAGLE-3 (Li et al. 2025), and the keys their files have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend/tensors.h"
#include "core/model/config.h"
#include "core/model/model_files.h"

namespace quire::speculate {

enum class HeadKind : std::uint8_t {
  kEagle,   // fc([embedding; the target's last state behind its norm]) into a layer; the target's output matrix
  kPrefix,  // the state alone into a layer, which looks at those before it; what comes out, normed, is another state
  kEagle3,  // fc(three states of the target), or its last one behind its norm, beside the embedding into a layer twice as wide;
            // an output matrix of its own
};

const char* name_of(HeadKind kind);  // as --speculative-config's method

struct HeadConfig {
  HeadKind kind = HeadKind::kEagle3;
  // Which states of the residual stream it takes, side by side: b stands before layer b. None: the last, behind the norm.
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
  model::RopeConfig rope{};           // without a rope_theta: 10000, whatever the target has
  bool attention_bias = false;        // q, k, v and o must have biases; where it says no, they may
  bool mlp_bias = false;              // likewise
  bool norm_before_fc = false;        // the states are normed as one vector
  bool fc_norm = false;               // each of the states is normed by itself
  bool norm_before_residual = false;  // the normed feature is what the layer adds to, not the feature
  bool norm_output = false;           // the next feature is the output behind the final norm

  backend::KvShape kv_shape(std::uint32_t block_tokens, std::uint32_t num_blocks, backend::KvType type) const;
  // Whether an fc makes one feature of several states; else the last one is the feature.
  bool fuses_states() const { return kind == HeadKind::kEagle3 && !boundaries.empty(); }
  std::uint32_t states_width() const {
    return target_hidden * (boundaries.empty() ? 1 : static_cast<std::uint32_t>(boundaries.size()));
  }
};

HeadConfig load_head_config(const model::ModelFiles& files, const model::Config& target);
// Same, from text; `name` is how errors call it.
HeadConfig parse_head_config(std::string_view text, const std::string& name, const model::Config& target);

}  // namespace quire::speculate
