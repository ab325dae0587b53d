// One decoder layer as it runs: its spec bound to norms, weights and tables; and clips of q, k and v.
// Owner   the owner of the weights; a layer borrows them.
// Thread  take_clip: at start; clip_qkv: engine.
#pragma once

#include <cstdint>
#include <optional>

#include "core/backend/attention_spec.h"
#include "core/backend/linear.h"
#include "core/backend/step_ops.h"
#include "core/model/latent.h"
#include "core/model/mixture.h"
#include "core/model/spec.h"

namespace quire::model {

// Clips between the product and rope_store().
//   before the norms   q, k, v = clip(q), clip(k), clip(v); rope_store() norms q and k
//   behind them        q, k, v = clip(norm(q)), clip(norm(k)), clip(v); rope_store() norms nothing
struct QkvClip {
  float limit = 0.0f;  // 0: no clip
  backend::HeadNorm q_norm{};
  backend::HeadNorm k_norm{};

  explicit operator bool() const { return limit != 0.0f; }
};

// The clip of a layer. Norms that come before it move from `attention` to the clip.
QkvClip take_clip(const AttentionLayer& spec, backend::AttentionSpec& attention);

// Clips the first `rows` rows of qkv [T, (H + 2G)·D].
void clip_qkv(backend::StepOps& ops, const QkvClip& clip, const backend::AttentionSpec& attention, std::uint32_t rows,
              backend::Buffer& qkv);

struct Layer {
  backend::AttentionSpec attention;
  backend::AttentionSpec attention_in_fp8;  // over a cache in FP8: with the checkpoint's scales of K and V
  float v_scale = 1.0f;                     // of it: its output is multiplied by this
  Placement placement = Placement::kPre;
  float residual_scale = 1.0f;
  backend::Norm input_norm;                           // [E] before attention; of a parallel layer before the MLP, too
  backend::Norm attention_norm;                       // [E] after attention; of kPostSum after sums, as the MLP's
  backend::Norm mlp_norm;                             // [E] before the MLP; of kParallelNorms beside attention's
  backend::Norm mlp_out_norm;                         // [E] after the MLP
  backend::Norm attention_inner_norm;                 // [H·D] before `out`
  backend::Norm mlp_inner_norm;                       // [F] before `down`
  backend::WeightList qkv;                            // [(H + 2G)·D, E], columns q | k | v
  std::optional<LatentAttention> latent{};            // then qkv and out have its shapes
  backend::WeightList out;                            // [E, H·D]
  backend::WeightList gate_up;                        // [2F, E], columns gate | up; [F, E] if it is not gated
  backend::WeightList down;                           // [E, F]; empty, as gate_up: there are experts alone
  std::optional<Mixture> experts{};                   // beside the MLP, which is then the shared expert
  backend::WeightList per_layer_gate;                 // [P, E] of PerLayerEmbedding; empty: the model has none
  backend::WeightList per_layer_out;                  // [E, P]
  backend::Norm per_layer_norm;                       // [E]
  backend::Norm router_norm;                          // [E] of AltUpSpec, as the next seven
  backend::WeightList router;                         // [n, E]
  backend::WeightList prediction;                     // [n·n, n]
  backend::WeightList correction;                     // [n, n]
  const backend::Vector* correction_scale = nullptr;  // [E]; null: none
  backend::WeightList laurel_left;                    // [rank, E]
  backend::WeightList laurel_right;                   // [E, rank]
  backend::Norm laurel_norm;                          // [E]
  float scale = 1.0f;                                 // of the layer's output
  backend::Activation activation = backend::Activation::kSilu;
  bool gated = true;
  std::optional<float> cutoff{};
  backend::Xielu xielu{};
  QkvClip qkv_clip{};

  bool has_mlp() const { return down.size() != 0; }
};

}  // namespace quire::model
