// A model as a table: everything that its config.json says of the arithmetic. The decoder runs a ModelSpec and knows no
// architecture by name; core/model/arch reads one from a config.json, and core/model/tensor_table.h lists its tensors.
//   layer    pre       x += s·attend(norm(x));  x += s·mlp(norm(x))
//            post      x += s·norm(attend(x));  x += s·norm(mlp(x))
//            sandwich  x += s·norm(attend(norm(x)));  x += s·norm(mlp(norm(x)))
//            post_sum  x = norm(x + s·attend(x));  x = norm(x + s·mlp(x))
//            parallel  n = norm(x);  x += s·attend(n);  x += s·mlp(n)
//            parallel with two norms  n = norm(x), n' = norm(x);  x += s·attend(n);  x += s·mlp(n')
//   with AltUp, the residual stream is the first of n; a layer runs on the first of streams that it predicts from all,
//   and its change corrects all of them (core/model/streams.h)
//   with experts, mlp(x) is the sum of the outputs of those that a router chooses for the row, each times its weight,
//   and of the layer's own MLP, the shared expert, if it has a width (StepOps::route(), combine_experts())
//   with inner norms, attend() and mlp() norm the rows that their last matrix multiplies
// Shape   E hidden, W width of the embedding, F feed-forward, L layers, H query heads, G kv heads, D head size, V
//         vocabulary. Ranges are checked, so that the product of any two fits 64 bits and every width 32.
// Owner   a value; immutable once read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/experts.h"
#include "core/backend/linear.h"
#include "core/backend/tensors.h"
#include "core/base/ids.h"
#include "core/model/rope/rope_spec.h"

namespace quire::model {

struct NormSpec {
  backend::NormKind kind = backend::NormKind::kRms;
  float eps = 1e-6f;
  bool bias = false;
  bool weightless = false;  // the checkpoint has no scale for it: all ones
  bool operator==(const NormSpec&) const = default;
};

// Norm of the heads of q, k or v.
struct HeadNormSpec {
  enum class Over : std::uint8_t { kHead, kEachHead, kRow };  // kEachHead: every head has a scale of its own
  NormSpec norm{};
  Over over = Over::kHead;
  bool operator==(const HeadNormSpec&) const = default;
};

// q is multiplied by 1 + beta · ln(1 + floor(position / original)) after rope.
struct PositionScale {
  double beta = 0.0;
  std::uint32_t original = 1;
  bool operator==(const PositionScale&) const = default;
};

// Biases of scores by position (ALiBi): StepOps::attend(). Head i of n, n a power of two, has the slope
// 2^(-max·(i+1)/n); of other numbers, the heads that the power below does not have take every other slope of twice it.
struct AlibiSpec {
  double max = 8.0;
  bool in_bf16 = false;
  bool operator==(const AlibiSpec&) const = default;

  std::vector<float> slopes(std::uint32_t num_heads) const;
};

// Latent attention (MLA): core/model/latent.h.
struct LatentSpec {
  std::uint32_t rank = 0;        // C of the latent
  std::uint32_t rope_dim = 0;    // R: columns that turn, of a query head, and of K once for all heads
  std::uint32_t nope_dim = 0;    // N: the others of a query head
  std::uint32_t value_dim = 0;   // of a head
  std::uint32_t query_rank = 0;  // of q, which then has two matrices with a norm between them; 0: it has one
  float norm_eps = 1e-6f;        // of the latent's norm and that one
  bool operator==(const LatentSpec&) const = default;
};

// Numbers that FP8 codes of K and V are multiplied by.
struct KvScales {
  float k = 1.0f;
  float v = 1.0f;
  bool operator==(const KvScales&) const = default;
};

struct AttentionLayer {
  static constexpr std::uint32_t kNoRope = ~0u;
  std::uint32_t num_heads = 0;     // H
  std::uint32_t num_kv_heads = 0;  // G, divides H
  std::uint32_t kv_copies = 1;     // of each kv head of the checkpoint, side by side; G counts them all
  std::uint32_t head_dim = 0;      // D, even; not always E / H
  float scale = 1.0f;
  std::uint32_t window = 0;  // number of positions that a row attends to, its own included; 0: all
  float softcap = 0.0f;      // 0: none
  std::uint32_t rope = 0;    // index in ModelSpec::ropes, or kNoRope
  bool interleaved = false;  // the checkpoint turns pairs (2i, 2i+1); loading reorders its rows to halves
  std::optional<HeadNormSpec> q_norm{};
  std::optional<HeadNormSpec> k_norm{};
  std::optional<HeadNormSpec> v_norm{};  // without a scale: kHead only
  bool norms_after_rope = false;         // of q and k: RMS norms over kHead only
  bool v_is_k = false;                   // v is the product that k is, before its norm: there is no v_proj
  // The layer whose K and V this one reads: it has q alone.
  std::optional<std::uint32_t> kv_source{};
  std::optional<PositionScale> q_scale{};
  std::optional<AlibiSpec> alibi{};
  bool sinks = false;         // each query head has a score that belongs to no position
  float qkv_clip = 0.0f;      // q, k and v are clipped to it before their norms; 0: not at all
  bool clips_normed = false;  // q and k are clipped behind their norms, which are not norms_after_rope then
  bool qkv_bias = false;
  bool out_bias = false;
  // G is 1 then, and D = R + C.
  std::optional<LatentSpec> latent{};
  KvScales kv_scales{};  // of a cache in FP8; fitted() sets the checkpoint's own
  bool operator==(const AttentionLayer&) const = default;

  // Dimensions of a head that a RoPE table is made for.
  std::uint32_t rope_head_dim() const { return latent ? latent->rope_dim : head_dim; }
  std::uint32_t out_width() const { return num_heads * (latent ? latent->value_dim : head_dim); }
  std::uint32_t q_width() const { return num_heads * head_dim; }
  std::uint32_t kv_width() const { return num_kv_heads * head_dim; }
};

struct FeedForward {
  std::uint32_t width = 0;  // F
  backend::Activation activation = backend::Activation::kSilu;
  bool gated = true;
  bool bias = false;
  // Gates below mean + cutoff · standard deviation of a row's are 0, and the others less by that.
  std::optional<float> cutoff{};
  std::optional<backend::Clamp> clamp{};  // of experts alone, in place of the activation
  bool operator==(const FeedForward&) const = default;
};

// A mixture of experts, all of one shape, of which a router takes some for each row.
struct MixtureSpec {
  backend::RouteRule rule{};
  bool router_bias = false;  // of the router's logits
  bool choice_bias = false;  // of the scores by which experts are chosen, not of their weights
  FeedForward expert{};
  bool shared_gate = false;  // the shared expert's output is multiplied by the sigmoid of a product of the row
  // The router takes the rows before the layer's norm, by a norm of its own without an offset, times E^-0.5.
  bool router_norm = false;
  bool expert_scales = false;  // each expert has a number by which its weights are multiplied
  // The experts take the rows before the layer's norm, too, by a norm of their own, and have one behind their sum, as
  // has the shared expert.
  bool own_norms = false;
  bool operator==(const MixtureSpec&) const = default;
};

enum class Placement : std::uint8_t { kPre, kPost, kSandwich, kParallel, kParallelNorms, kPostSum };

struct LayerSpec {
  Placement placement = Placement::kPre;
  NormSpec norm{};
  AttentionLayer attention{};
  FeedForward mlp{};  // beside experts the shared one; of width 0: there is none
  std::optional<MixtureSpec> experts{};
  bool inner_norms = false;     // of the rows that attention's output matrix and the MLP's last one multiply
  float residual_scale = 1.0f;  // s
  bool scaled = false;          // the checkpoint has a number by which the layer's output is multiplied
  bool operator==(const LayerSpec&) const = default;

  bool has_mlp() const { return mlp.width != 0; }
  bool norms_input() const { return placement != Placement::kPost && placement != Placement::kPostSum; }
  bool norms_mlp_input() const {
    return placement == Placement::kPre || placement == Placement::kSandwich || placement == Placement::kParallelNorms;
  }
  bool norms_output() const { return placement == Placement::kPost || placement == Placement::kSandwich; }
  bool norms_sum() const { return placement == Placement::kPostSum; }
};

// Embeddings of P numbers that each layer adds to its output, after what precedes (PLE): the row of a table [V', L·P]
// and a projection of the embedding, normed by P:
//   p = (norm(W·x / sqrt(E)) + table[token] · sqrt(P)) / sqrt(2)
//   x += norm(W_out · (act(W_gate·x) · p[layer]))
struct PerLayerEmbedding {
  std::uint32_t width = 0;  // P
  std::uint32_t vocab = 0;  // V'; tokens from there on take the first row
  bool operator==(const PerLayerEmbedding&) const = default;
};

// AltUp: n residual streams; and LAUREL, a branch of low rank beside attention.
struct AltUpSpec {
  std::uint32_t streams = 4;  // n
  std::uint32_t laurel_rank = 64;
  bool scales = true;  // a vector multiplies the first stream before it gates the embeddings of the layer
  bool operator==(const AltUpSpec&) const = default;
};

// Names of a mixture's tensors below "model.layers.N.", and how a checkpoint stores the experts: a tensor for each
// matrix of each, or one for the same matrix of all, in which each is [outputs, inputs] or [inputs, outputs].
struct ExpertNames {
  enum class Layout : std::uint8_t { kSeparate, kTogether, kTransposed };
  // Without ".weight"; "{}" is the number of the expert.
  std::string router = "mlp.gate";
  std::string gate = "mlp.experts.{}.gate_proj";
  std::string up = "mlp.experts.{}.up_proj";
  std::string down = "mlp.experts.{}.down_proj";
  std::string shared_gate = "mlp.shared_expert.gate_proj";
  std::string shared_up = "mlp.shared_expert.up_proj";
  std::string shared_gate_up{};  // not empty: gate and up are one tensor
  std::string shared_down = "mlp.shared_expert.down_proj";
  std::string shared_weight = "mlp.shared_expert_gate";  // of MixtureSpec::shared_gate
  // Whole names of tensors of all experts; a bias of "x.weight" is "x.bias", of others "x_bias".
  std::string all_gate_up = "mlp.experts.gate_up_proj";  // gate, then up
  std::string all_gate{};                                // not empty: gate and up are two tensors
  std::string all_up{};
  std::string all_down = "mlp.experts.down_proj";
  std::string choice_bias = "mlp.gate.e_score_correction_bias";
  std::string router_norm = "router.scale";
  std::string scales = "router.per_expert_scale";
  // Without ".weight": MixtureSpec::own_norms.
  std::string norm = "pre_feedforward_layernorm_2";
  std::string out_norm = "post_feedforward_layernorm_2";
  std::string shared_norm = "post_feedforward_layernorm_1";
  std::vector<std::uint64_t> choice_bias_shape{};  // empty: [X]
  // The layout of tensors of all experts whose shape leaves it open; fitted() sets the checkpoint's own.
  Layout layout = Layout::kSeparate;
  bool alternating = false;  // in tensors of all experts the outputs of gate and up alternate
};

// Names of a family's tensors. The order of rows of packed ones: q, k, v, of all heads or for each kv head its own;
// gate, up.
struct TensorNames {
  // Below "model.layers.N.", without ".weight".
  std::string input_norm = "input_layernorm";
  std::string q = "self_attn.q_proj";
  std::string k = "self_attn.k_proj";
  std::string v = "self_attn.v_proj";
  std::string qkv{};                        // not empty: q, k and v are one tensor
  bool qkv_by_kv_head = false;              // in it follow for each kv head its query heads, k and v
  std::string q_norm = "self_attn.q_norm";  // "{}" in it: a tensor for each head
  std::string k_norm = "self_attn.k_norm";
  std::string sinks = "self_attn.sinks";  // its whole name
  std::string out = "self_attn.o_proj";
  // Of LatentSpec.
  std::string q_low = "self_attn.q_a_proj";
  std::string q_low_norm = "self_attn.q_a_layernorm";
  std::string q_high = "self_attn.q_b_proj";
  std::string kv_low = "self_attn.kv_a_proj_with_mqa";
  std::string kv_low_norm = "self_attn.kv_a_layernorm";
  std::string kv_high = "self_attn.kv_b_proj";
  std::string k_high{};  // not empty: kv_high is two tensors of all heads, K's [H, C, N] and V's [H, V, C]
  std::string v_high{};
  std::string attention_norm = "post_attention_layernorm";
  std::string mlp_norm = "post_attention_layernorm";
  std::string gate = "mlp.gate_proj";
  std::string up = "mlp.up_proj";
  std::string gate_up{};  // not empty: gate and up are one tensor
  std::string down = "mlp.down_proj";
  ExpertNames experts{};
  bool transposed = false;  // the layers' matrices are [inputs, outputs]
  std::string mlp_out_norm = "post_feedforward_layernorm";
  std::string attention_inner_norm = "self_attn.attn_sub_norm";
  std::string mlp_inner_norm = "mlp.ffn_sub_norm";
  std::string per_layer_gate = "per_layer_input_gate";
  std::string per_layer_out = "per_layer_projection";
  std::string per_layer_norm = "post_per_layer_input_norm";
  std::string correction_scale = "altup.correct_output_scale";  // its whole name
  std::string correction = "altup.correction_coefs";
  std::string prediction = "altup.prediction_coefs";
  std::string router = "altup.modality_router";
  std::string router_norm = "altup.router_norm";
  std::string laurel_left = "laurel.linear_left";
  std::string laurel_right = "laurel.linear_right";
  std::string laurel_norm = "laurel.post_laurel_norm";
  std::string scale = "layer_scalar";  // its whole name
  std::string xielu = "mlp.act_fn";    // below it, whole names: alpha_p, alpha_n, beta, eps
  // At the top.
  std::string per_layer_embedding = "embed_tokens_per_layer";
  std::string per_layer_projection = "per_layer_model_projection";
  std::string per_layer_projection_norm = "per_layer_projection_norm";
  std::string stream_in = "altup_projections";           // below it: a number from 0 on
  std::string stream_out = "altup_unembed_projections";  // likewise
  std::string prefix = "model.";
  std::string embedding = "embed_tokens";
  std::string embedding_norm{};
  std::string embedding_in = "project_in";
  std::string embedding_out = "project_out";
  std::string layers = "layers";
  std::string positions{};
  std::string final_norm = "norm";
  std::string head = "lm_head";
  // Patterns, '*' for any characters, of tensors that a checkpoint may have and the decoder does not use.
  std::vector<std::string> skipped{};
};

// Embeddings of positions, which are added to those of tokens: row position + offset of a table.
struct PositionEmbedding {
  std::uint32_t offset = 0;
  bool operator==(const PositionEmbedding&) const = default;
};

struct ModelSpec {
  std::string architecture;         // "LlamaForCausalLM"
  std::string model_type;           // "llama": of the text model
  std::uint32_t hidden = 0;         // E
  std::uint32_t vocab = 0;          // V: rows of the embedding and width of the logits
  std::uint32_t embedding = 0;      // W; others than E: one matrix takes rows to E, another the last ones back to W
  std::uint32_t max_positions = 0;  // max_position_embeddings
  float embedding_scale = 1.0f;
  std::vector<RopeConfig> ropes;  // tables that layers name; may be empty
  std::optional<PositionEmbedding> position_embedding{};
  std::optional<NormSpec> embedding_norm{};
  std::vector<LayerSpec> layers;  // [L], at least one
  std::optional<PerLayerEmbedding> per_layer{};
  std::optional<AltUpSpec> altup{};  // kSandwich layers with PerLayerEmbedding only
  std::optional<NormSpec> final_norm = NormSpec{};
  float norm_offset = 0.0f;      // is added to the stored scale of every norm: 1 for norms that multiply by 1 + w
  bool tied_head = false;        // the output matrix is the embedding
  bool tied_by_default = false;  // config.json does not say so: an output matrix of the checkpoint goes first
  bool head_bias = false;
  float logit_scale = 1.0f;
  float logit_softcap = 0.0f;  // 0: none
  TensorNames names;
  std::optional<TokenId> bos;
  std::vector<TokenId> eos;  // from config.json; a list in generation_config.json overrides it

  bool projects_embedding() const { return embedding != hidden; }
  std::uint32_t num_layers() const { return static_cast<std::uint32_t>(layers.size()); }
  // The mixture of the first layer that has one: all have the same shape. Null: none has.
  const MixtureSpec* mixture() const;
  std::vector<std::uint32_t> windows() const;  // [L]
  // Chooses the tables for a server of sequences up to `positions`: longrope has two, and cached keys are of one of
  // them.
  void serve_up_to(std::uint32_t positions);
  // Gives each of `num_ranks` tensor-parallel ranks a kv head in layers that have fewer, by copies of those heads, if
  // every rank then has query heads of one of them alone. A norm over all of K stays one over the checkpoint's heads:
  // such layers are left as they are.
  void copy_kv_heads(std::uint32_t num_ranks);
  // The longest sequence that the RoPE settings are valid for; --max-model-len may only lower it.
  std::uint32_t max_model_len() const;
  // Index of the layer's K and V in kv_shape().
  std::uint32_t kv_layer(std::uint32_t layer) const;
  backend::KvShape kv_shape(std::uint32_t block_tokens, std::uint32_t num_blocks, backend::KvType type) const;
  // One line with everything that fixes the arithmetic, windows as width*layers, RoPE resolved: part of the numeric
  // mode.
  std::string describe() const;
};

}  // namespace quire::model
