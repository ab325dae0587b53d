#include "core/model/decoder.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/check.h"
#include "core/base/start_error.h"
#include "core/model/rope/rope.h"
#include "core/model/rope/rope_math.h"

namespace quire::model {

using backend::ThenActivate;
using backend::ThenAdd;
using backend::ThenChoose;
using backend::ThenRopeStore;

Decoder::Decoder(backend::Ops& ops, const ModelSpec& config, const ModelFiles& files, std::uint32_t max_model_len,
                 const LoadOptions& options)
    : ops_(ops), spec_(config), max_model_len_(max_model_len), ropes_(config.ropes.size()) {
  if (max_model_len == 0 || max_model_len > config.max_model_len()) {
    throw StartError("max-model-len " + std::to_string(max_model_len) + " is outside [1, " +
                     std::to_string(config.max_model_len()) + "], the range of this model's positions");
  }
  weights_ = load_weights(ops, config, files, options);
  weight_format_ = weights_.list(Role::kQkv, 0)[0].format();
  for (std::uint32_t index = 0; index < spec_.num_layers(); ++index) layers_.push_back(make_layer(index));
  if (spec_.final_norm) final_norm_ = norm_of(*spec_.final_norm, Role::kFinalNorm, spec_.hidden);
  if (spec_.embedding_norm) {
    embedding_norm_ = norm_of(*spec_.embedding_norm, Role::kEmbeddingNorm, spec_.hidden);
  }
  if (spec_.per_layer) {
    per_layer_projection_norm_ = norm_of(*spec_.final_norm, Role::kPerLayerProjectionNorm, spec_.per_layer->width);
  }
}

Layer Decoder::make_layer(std::uint32_t index) {
  const LayerSpec& spec = spec_.layers[index];
  Layer layer;
  layer.attention = make_attention(index);
  layer.placement = spec.placement;
  layer.residual_scale = spec.residual_scale;
  const auto norm = [&](bool is_there, Role role, std::uint32_t width) {
    return is_there ? norm_of(spec.norm, role, width, index) : backend::Norm{};
  };
  layer.input_norm = norm(spec.norms_input(), Role::kInputNorm, spec_.hidden);
  const bool norms_after = spec.norms_output() || spec.norms_sum();
  layer.attention_norm = norm(norms_after, Role::kAttentionNorm, spec_.hidden);
  layer.mlp_norm = norm(spec.norms_mlp_input(), Role::kMlpNorm, spec_.hidden);
  layer.mlp_out_norm = norm(norms_after, Role::kMlpOutNorm, spec_.hidden);
  layer.attention_inner_norm = norm(spec.inner_norms, Role::kAttentionInnerNorm, spec.attention.q_width());
  layer.mlp_inner_norm = norm(spec.inner_norms, Role::kMlpInnerNorm, spec.mlp.width);
  layer.qkv = weights_.list(Role::kQkv, index);
  layer.out = weights_.list(Role::kOut, index);
  if (spec.has_mlp()) {
    layer.gate_up = weights_.list(Role::kGateUp, index);
    layer.down = weights_.list(Role::kDown, index);
  }
  if (spec.experts) layer.experts = make_mixture(weights_, spec, index);
  if (spec_.per_layer) {
    layer.per_layer_gate = weights_.list(Role::kPerLayerGate, index);
    layer.per_layer_out = weights_.list(Role::kPerLayerOut, index);
    layer.per_layer_norm = norm_of(spec.norm, Role::kPerLayerNorm, spec_.hidden, index);
  }
  if (spec_.altup) {
    layer.router_norm = norm_of(spec.norm, Role::kRouterNorm, spec_.hidden, index);
    layer.router = weights_.list(Role::kRouter, index);
    layer.prediction = weights_.list(Role::kPrediction, index);
    layer.correction = weights_.list(Role::kCorrection, index);
    layer.correction_scale = weights_.vector(Role::kCorrectionScale, index);
    layer.laurel_left = weights_.list(Role::kLaurelLeft, index);
    layer.laurel_right = weights_.list(Role::kLaurelRight, index);
    layer.laurel_norm = norm_of(spec.norm, Role::kLaurelNorm, spec_.hidden, index);
  }
  if (spec.scaled) layer.scale = weights_.number(Role::kLayerScale, index);
  layer.activation = spec.mlp.activation;
  layer.gated = spec.mlp.gated;
  layer.cutoff = spec.mlp.cutoff;
  if (spec.mlp.activation == backend::Activation::kXielu) layer.xielu = xielu_of(index);
  layer.qkv_clip = take_clip(spec.attention, layer.attention);
  const KvScales& kv_scales = spec.attention.kv_scales;
  layer.attention_in_fp8 = layer.attention;
  layer.attention_in_fp8.k_factor = 1.0f / kv_scales.k;
  layer.attention_in_fp8.v_factor = 1.0f / kv_scales.v;
  layer.attention_in_fp8.scale *= kv_scales.k;
  layer.v_scale = kv_scales.v;
  if (spec.attention.latent) layer.latent = make_latent(weights_, spec.attention, index);
  return layer;
}

backend::AttentionSpec Decoder::make_attention(std::uint32_t index) {
  const AttentionLayer& spec = spec_.layers[index].attention;
  backend::AttentionSpec attention;
  attention.layer = spec_.kv_layer(index);
  attention.num_heads = spec.num_heads;
  attention.num_kv_heads = spec.num_kv_heads;
  attention.head_dim = spec.head_dim;
  attention.latent = spec.latent ? spec.latent->rank : 0;
  attention.scale = spec.scale;
  attention.window = spec.window;
  attention.softcap = spec.softcap;
  attention.norms_after_rope = spec.norms_after_rope;
  attention.q_norm = heads_norm(spec.q_norm, Role::kQNorm, spec.head_dim, index);
  attention.k_norm = heads_norm(spec.k_norm, Role::kKNorm, spec.head_dim, index);
  if (spec.v_norm) attention.v_norm.norm = {ones(spec.head_dim), spec.v_norm->norm.eps, spec.v_norm->norm.kind};
  attention.stores = !spec.kv_source;
  attention.rope = rope_of(spec);
  if (spec.sinks) attention.sinks.scores = weights_.vector(Role::kSinks, index);
  if (spec.alibi) attention.bias = {slopes(*spec.alibi, spec.num_heads), 0, spec.alibi->in_bf16};
  if (spec.q_scale) attention.q_scale = position_scale(*spec.q_scale);
  return attention;
}

const backend::RopeTable* Decoder::rope_of(const AttentionLayer& attention) {
  if (attention.rope == AttentionLayer::kNoRope) return nullptr;
  std::unique_ptr<backend::RopeTable>& table = ropes_[attention.rope];
  if (table == nullptr) {
    const RopeConfig& rope = spec_.ropes[attention.rope];
    const std::uint32_t head_dim = attention.rope_head_dim();
    const RopeAngles angles = rope_angles(rope, head_dim, max_model_len_);
    table = ops_.upload_rope(angles.cosines, angles.sines, rope.rotary_dims(head_dim) / 2);
  }
  return table.get();
}

const backend::Vector* Decoder::position_scale(const PositionScale& scale) {
  for (const auto& [known, vector] : position_scales_) {
    if (known == scale) return vector.get();
  }
  std::vector<float> values(max_model_len_);
  for (std::uint32_t position = 0; position < max_model_len_; ++position) {
    values[position] = static_cast<float>(1.0 + scale.beta * rope_math::log(1.0 + position / scale.original));
  }
  position_scales_.emplace_back(scale, ops_.upload(values));
  return position_scales_.back().second.get();
}

const backend::Vector* Decoder::slopes(const AlibiSpec& alibi, std::uint32_t num_heads) {
  for (const auto& [known, vector] : slopes_) {
    if (known == alibi && vector->size() == num_heads) return vector.get();
  }
  slopes_.emplace_back(alibi, ops_.upload(alibi.slopes(num_heads)));
  return slopes_.back().second.get();
}

// The checkpoint has the logarithms of e^p - 1 and e^(n - b) - 1.
backend::Xielu Decoder::xielu_of(std::uint32_t layer) const {
  const auto softplus = [&](Role role) {
    return static_cast<float>(rope_math::log(1.0 + rope_math::exp(double{weights_.number(role, layer)})));
  };
  const float linear = weights_.number(Role::kXieluLinear, layer);
  return {softplus(Role::kXieluPositive), linear + softplus(Role::kXieluNegative), linear,
          std::min(0.0f, weights_.number(Role::kXieluMost, layer))};
}

const backend::Vector* Decoder::ones(std::uint32_t size) {
  for (const auto& known : ones_) {
    if (known->size() == size) return known.get();
  }
  ones_.push_back(ops_.upload(std::vector<float>(size, 1.0f)));
  return ones_.back().get();
}

backend::Norm Decoder::norm_of(const NormSpec& norm, Role role, std::uint32_t width, std::uint32_t layer) {
  if (norm.weightless) return {ones(width), norm.eps, norm.kind};
  return {weights_.vector(role, layer), norm.eps, norm.kind, weights_.bias(role, layer)};
}

backend::HeadNorm Decoder::heads_norm(const std::optional<HeadNormSpec>& heads, Role role, std::uint32_t width,
                                      std::uint32_t layer) {
  if (!heads) return {};
  return {norm_of(heads->norm, role, width, layer), heads->over == HeadNormSpec::Over::kRow};
}

Workspace Decoder::make_workspace(std::uint32_t max_rows, std::uint32_t max_logits_rows,
                                  const Captures& captures) const {
  return model::make_workspace(ops_, spec_, layers_, max_rows, max_logits_rows, captures);
}

void Decoder::capture(std::uint32_t boundary, std::uint32_t num_rows, Workspace& workspace) const {
  const std::vector<std::uint32_t>& wanted = workspace.captures.boundaries;
  for (std::uint32_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == boundary) ops_.place(*workspace.x, num_rows, i * spec_.hidden, *workspace.states);
  }
}

void Decoder::forward(const backend::Batch& batch, backend::KvCache& cache, Workspace& workspace,
                      bool norms_all) const {
  ops_.begin(batch);
  embed(batch.num_rows(), workspace);
  for (std::uint32_t index = 0; index < spec_.num_layers(); ++index) {
    capture(index, batch.num_rows(), workspace);
    run(index, {}, batch.num_rows(), cache, workspace);
  }
  if (spec_.altup) merge_streams(ops_, weights_, batch.num_rows(), workspace.streams, *workspace.x, *workspace.product);
  capture(spec_.num_layers(), batch.num_rows(), workspace);
  if (workspace.captures.final_norm) norm_last(*workspace.x, batch.num_rows(), *workspace.states, nullptr);
  if (norms_all) norm_last(*workspace.x, batch.num_rows(), *workspace.normed, workspace.narrow.get());
  add_logits_row(batch, workspace);
}

void Decoder::forward_parts(const backend::Batch& batch, backend::KvCache& cache, Workspace& workspace,
                            std::span<const LayerParts> parts) const {
  CHECK_EQ(parts.size(), layers_.size());
  ops_.begin(batch);
  embed(batch.num_rows(), workspace);
  for (std::uint32_t index = 0; index < parts.size(); ++index) {
    LayerParts some = parts[index];
    some.attention = some.attention && parts[spec_.layers[index].attention.kv_source.value_or(index)].attention;
    run(index, some, batch.num_rows(), cache, workspace);
  }
  if (spec_.altup) merge_streams(ops_, weights_, batch.num_rows(), workspace.streams, *workspace.x, *workspace.product);
  add_logits_row(batch, workspace);
}

void Decoder::embed(std::uint32_t rows, Workspace& workspace) const {
  ops_.embed(weights_.weight(Role::kEmbedding), spec_.embedding_scale,
             spec_.projects_embedding() ? *workspace.narrow : *workspace.x);
  if (spec_.projects_embedding()) {
    ops_.linear(*workspace.narrow, weights_.list(Role::kEmbeddingIn), rows, *workspace.x);
  }
  if (spec_.position_embedding) {
    ops_.embed_positions(weights_.weight(Role::kPositionEmbedding), spec_.position_embedding->offset,
                         *workspace.product);
    ops_.add(*workspace.x, *workspace.product, 1.0f, rows);
  }
  if (embedding_norm_) ops_.norm(*workspace.x, embedding_norm_, rows, *workspace.x);
  if (spec_.per_layer) embed_per_layer(rows, workspace);
  if (spec_.altup) begin_streams(ops_, weights_, rows, *workspace.x, workspace.streams);
}

void Decoder::embed_per_layer(std::uint32_t rows, Workspace& workspace) const {
  const std::uint32_t width = spec_.per_layer->width;
  backend::Buffer& projected = *workspace.projected;
  ops_.embed(weights_.weight(Role::kPerLayerEmbedding), std::sqrt(static_cast<float>(width)), *workspace.per_layer,
             spec_.per_layer->vocab);
  ops_.linear(*workspace.x, weights_.list(Role::kPerLayerProjection), rows, projected);
  ops_.rescale(projected, 1.0f / std::sqrt(static_cast<float>(spec_.hidden)), 0.0f, rows);
  ops_.norm_columns(projected, 0, projected.width(), width, per_layer_projection_norm_, rows);
  ops_.add(*workspace.per_layer, projected, 1.0f, rows);
  ops_.rescale(*workspace.per_layer, std::sqrt(0.5f), 0.0f, rows);
}

void Decoder::run(std::uint32_t index, LayerParts parts, std::uint32_t rows, backend::KvCache& cache,
                  Workspace& workspace) const {
  if (spec_.altup) return run_on_streams(index, parts, rows, cache, workspace);
  const Layer& layer = layers_[index];
  const auto [attention, mlp] = inputs_of(layer, rows, workspace);
  if (parts.attention) attend(layer, attention, rows, cache, workspace);
  if (parts.mlp) feed_forward(layer, mlp, rows, workspace);
  if (spec_.per_layer) add_per_layer(layer, index, rows, workspace);
  if (layer.scale != 1.0f) ops_.rescale(*workspace.x, layer.scale, 0.0f, rows);
}

void Decoder::run_on_streams(std::uint32_t index, LayerParts parts, std::uint32_t rows, backend::KvCache& cache,
                             Workspace& workspace) const {
  const Layer& layer = layers_[index];
  StreamBuffers& streams = workspace.streams;
  backend::Buffer& x = *workspace.x;
  backend::Buffer& normed = *workspace.normed;
  predict_streams(ops_, layer, rows, normed, streams);
  ops_.cut(streams.first(), rows, 0, x);
  ops_.norm(x, layer.input_norm, rows, normed);
  add_laurel(ops_, layer, rows, normed, streams);  // before attention takes the norm's buffer
  if (parts.attention) attend(layer, {&normed, {}}, rows, cache, workspace);
  ops_.add(x, streams.laurel(), 1.0f, rows);
  ops_.rescale(x, std::sqrt(0.5f), 0.0f, rows);
  if (parts.mlp) feed_forward(layer, {&x, {layer.mlp_norm, &normed}}, rows, workspace);
  correct_streams(ops_, layer, rows, x, normed, streams);
  ops_.cut(streams.first(), rows, 0, x);
  if (layer.correction_scale != nullptr) ops_.multiply_columns(x, *layer.correction_scale, rows);
  ops_.linear(gated_per_layer(layer, index, rows, workspace), layer.per_layer_out, rows, *workspace.product);
  ops_.norm(*workspace.product, layer.per_layer_norm, rows, *workspace.product);
  for (backend::Buffer* other : streams.all().subspan(1)) ops_.add(*other, *workspace.product, 1.0f, rows);
  if (workspace.captures.num() > 0) ops_.cut(streams.first(), rows, 0, x);
}

void Decoder::add_per_layer(const Layer& layer, std::uint32_t index, std::uint32_t rows, Workspace& workspace) const {
  ops_.linear(gated_per_layer(layer, index, rows, workspace), layer.per_layer_out, rows, *workspace.product, {},
              ThenAdd{workspace.x.get(), 1.0f, layer.per_layer_norm});
}

backend::Buffer& Decoder::gated_per_layer(const Layer& layer, std::uint32_t index, std::uint32_t rows,
                                          Workspace& workspace) const {
  const std::uint32_t width = spec_.per_layer->width;
  backend::Buffer& activated = workspace.activated.of(width);
  ops_.linear(*workspace.x, layer.per_layer_gate, rows, workspace.gate_up.of(width), {},
              ThenActivate{&activated, layer.activation, /*gated=*/false});
  ops_.multiply_by(activated, *workspace.per_layer, index * width, rows);
  return activated;
}

// Parallel layers norm x before attention adds to it.
std::pair<Decoder::Input, Decoder::Input> Decoder::inputs_of(const Layer& layer, std::uint32_t rows,
                                                             Workspace& workspace) const {
  backend::Buffer& x = *workspace.x;
  backend::Buffer& normed = *workspace.normed;
  switch (layer.placement) {
    case Placement::kPre:
    case Placement::kPost:
    case Placement::kPostSum:
    case Placement::kSandwich:
      break;
    case Placement::kParallel:
      ops_.norm(x, layer.input_norm, rows, normed);
      return {{&normed, {}}, {&normed, {}}};
    case Placement::kParallelNorms:
      ops_.norm(x, layer.input_norm, rows, normed);
      ops_.norm(x, layer.mlp_norm, rows, *workspace.mlp_normed);
      return {{&normed, {}}, {workspace.mlp_normed.get(), {}}};
  }
  return {{&x, {layer.input_norm, &normed}}, {&x, {layer.mlp_norm, &normed}}};
}

backend::Before Decoder::inner(const backend::Norm& norm, const backend::Buffer& rows, const Workspace& workspace) {
  if (!norm) return {};
  return {norm, &workspace.inner_normed.of(rows.width())};
}

void Decoder::attend(const Layer& layer, const Input& in, std::uint32_t rows, backend::KvCache& cache,
                     Workspace& workspace) const {
  if (layer.latent) {
    backend::Buffer& product = workspace.qkv.of(layer.qkv.n());
    ops_.linear(*in.rows, layer.qkv, rows, product, in.before);
    const backend::Buffer& heads =
        attend_latent(ops_, *layer.latent, layer.attention, product, rows, cache, workspace.latent);
    return add_product(layer, heads, layer.out, {}, layer.attention_norm, rows, workspace);
  }
  backend::Buffer& qkv = workspace.qkv.of(layer.attention.qkv_width());
  backend::Buffer& attention = workspace.attention.of(layer.attention.q_width());
  const bool in_fp8 = cache.shape().type == backend::KvType::kFp8;
  const backend::AttentionSpec& spec = in_fp8 ? layer.attention_in_fp8 : layer.attention;
  if (layer.qkv_clip) {
    ops_.linear(*in.rows, layer.qkv, rows, qkv, in.before);
    clip_qkv(ops_, layer.qkv_clip, spec, rows, qkv);
    ops_.rope_store(spec, qkv, cache);
  } else {
    ops_.linear(*in.rows, layer.qkv, rows, qkv, in.before, ThenRopeStore{&spec, &cache});
  }
  ops_.attend(spec, qkv, cache, attention);
  if (in_fp8 && layer.v_scale != 1.0f) ops_.rescale(attention, layer.v_scale, 0.0f, rows);
  add_product(layer, attention, layer.out, inner(layer.attention_inner_norm, attention, workspace),
              layer.attention_norm, rows, workspace);
}

void Decoder::feed_forward(const Layer& layer, const Input& in, std::uint32_t rows, Workspace& workspace) const {
  if (layer.experts) return mix_experts(layer, in, rows, workspace);
  const backend::Buffer& activated = activate(layer, in, rows, workspace);
  add_product(layer, activated, layer.down, inner(layer.mlp_inner_norm, activated, workspace), layer.mlp_out_norm, rows,
              workspace);
}

const backend::Buffer& Decoder::activate(const Layer& layer, const Input& in, std::uint32_t rows,
                                         Workspace& workspace) const {
  backend::Buffer& activated = workspace.activated.of(layer.down[0].k());
  backend::Buffer& gate_up = workspace.gate_up.of(layer.gate_up.n());
  if (layer.cutoff) {
    ops_.linear(*in.rows, layer.gate_up, rows, gate_up, in.before);
    ops_.cut_below(gate_up, activated.width(), *layer.cutoff, rows);
    ops_.activate(gate_up, layer.activation, layer.gated, rows, activated);
  } else {
    ops_.linear(*in.rows, layer.gate_up, rows, gate_up, in.before,
                ThenActivate{&activated, layer.activation, layer.gated, layer.xielu});
  }
  return activated;
}

// Router, experts and shared expert take the same rows: their norm is done once.
void Decoder::mix_experts(const Layer& layer, const Input& in, std::uint32_t rows, Workspace& workspace) const {
  if (in.before.norm) ops_.norm(*in.rows, in.before.norm, rows, *in.before.normed);
  const backend::Buffer& x = in.before.norm ? *in.before.normed : *in.rows;
  if (layer.has_mlp()) {
    ops_.linear(activate(layer, {&x, {}}, rows, workspace), layer.down, rows, workspace.experts.shared());
  }
  backend::Buffer& product = *workspace.product;
  run_mixture(ops_, *layer.experts, {in.rows, &x, workspace.normed.get()}, layer.has_mlp(), rows, workspace.experts,
              product);
  const bool norms_sum = layer.placement == Placement::kPostSum;
  if (layer.mlp_out_norm && !norms_sum) ops_.norm(product, layer.mlp_out_norm, rows, product);
  ops_.add(*workspace.x, product, layer.residual_scale, rows);
  if (norms_sum) ops_.norm(*workspace.x, layer.mlp_out_norm, rows, *workspace.x);
}

void Decoder::add_product(const Layer& layer, const backend::Buffer& in, const backend::WeightList& weights,
                          const backend::Before& before, const backend::Norm& norm, std::uint32_t rows,
                          Workspace& workspace) const {
  const bool norms_sum = layer.placement == Placement::kPostSum;
  backend::Buffer& x = *workspace.x;
  ops_.linear(in, weights, rows, *workspace.product, before,
              ThenAdd{&x, layer.residual_scale, norms_sum ? backend::Norm{} : norm});
  if (norms_sum) ops_.norm(x, norm, rows, x);
}

const backend::Buffer& Decoder::norm_last(const backend::Buffer& x, std::uint32_t rows, backend::Buffer& normed,
                                          backend::Buffer* narrow) const {
  if (final_norm_) {
    ops_.norm(x, final_norm_, rows, normed);
  } else {
    ops_.cut(x, rows, 0, normed);
  }
  if (narrow == nullptr) return normed;
  ops_.linear(normed, weights_.list(Role::kEmbeddingOut), rows, *narrow);
  return *narrow;
}

void Decoder::add_logits_row(const backend::Batch& batch, Workspace& workspace) const {
  const auto num_logits_rows = static_cast<std::uint32_t>(batch.logits_rows.size());
  if (num_logits_rows == 0) return;
  ops_.gather_logits_rows(*workspace.x, *workspace.logits_rows);
  const backend::Buffer& last =
      norm_last(*workspace.logits_rows, num_logits_rows, *workspace.normed_rows, workspace.narrow_rows.get());
  ops_.linear(last, weights_.output(), num_logits_rows, *workspace.logits, {},
              ThenChoose{spec_.vocab, spec_.logit_scale, spec_.logit_softcap});
}

}  // namespace quire::model
