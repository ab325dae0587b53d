#include "core/speculate/heads/draft_head.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/model/rope/rope.h"

namespace quire::speculate {
namespace {

std::uint32_t count(std::size_t size) { return static_cast<std::uint32_t>(size); }

// Window of the head's layer: positions that some layer of the target sees and whose blocks are sure to be there still
// when its next row runs. 0: all.
std::uint32_t window_of(const model::ModelSpec& target) {
  const std::vector<std::uint32_t> windows = target.windows();
  if (std::ranges::find(windows, 0u) != windows.end()) return 0;
  return std::max(2u, *std::ranges::max_element(windows)) - 1;
}

}  // namespace

DraftHead::DraftHead(backend::Ops& ops, const model::Decoder& target, const HeadConfig& config, HeadWeights weights,
                     const HeadLimits& limits)
    : ops_(ops),
      config_(config),
      limits_(limits),
      weights_(std::move(weights)),
      embed_(weights_.embed ? *weights_.embed : target.embedding()),
      output_(weights_.head ? *weights_.head : target.output()),
      mover_(ops, limits.max_rows) {
  // The table also covers positions beyond the head's training: a draft there is better than none.
  const model::RopeAngles angles = model::rope_angles(config.rope, config.head_dim, limits.max_model_len);
  rope_ = ops.upload_rope(angles.cosines, angles.sines, config.head_dim / 2);
  cache_ = ops.make_kv(config.kv_shape(limits.block_tokens, limits.num_blocks, limits.kv_dtype));
  const std::vector<float> zeros(config.hidden);
  const backend::HostMatrix row{zeros.data(), backend::Format::kF32, 1, config.hidden};
  nothing_ = ops.pack({&row, 1}, {});
  make_layers(target);
  make_buffers();
}

void DraftHead::make_layers(const model::Decoder& target) {
  for (std::uint32_t index = 0; index < config_.num_layers; ++index) {
    const HeadLayer& weights = weights_.layers[index];
    model::Layer layer;
    layer.attention.layer = index;
    layer.attention.num_heads = config_.num_heads;
    layer.attention.num_kv_heads = config_.num_kv_heads;
    layer.attention.head_dim = config_.head_dim;
    layer.attention.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config_.head_dim)));
    layer.attention.window = window_of(target.config());
    layer.attention.q_norm.norm = {weights.q_norm.get(), config_.norm_eps};
    layer.attention.k_norm.norm = {weights.k_norm.get(), config_.norm_eps};
    layer.attention.rope = rope_.get();
    layer.input_norm = {weights.input_norm.get(), config_.norm_eps};
    layer.qkv = *weights.qkv;
    layer.out = *weights.out;
    layer.mlp_norm = {weights.post_norm.get(), config_.norm_eps};
    layer.gate_up = *weights.gate_up;
    layer.down = *weights.down;
    layers_.push_back(layer);
  }
}

void DraftHead::make_buffers() {
  const std::uint32_t rows = limits_.max_rows;
  const std::uint32_t hidden = config_.hidden;
  const backend::AttentionSpec& attention = layers_.front().attention;
  picked_ = ops_.make_buffer(rows, config_.states_width());
  const bool normed = weights_.states_norm || !weights_.state_norms.empty();
  if (normed) normed_states_ = ops_.make_buffer(rows, config_.states_width());
  if (!weights_.state_norms.empty()) {
    for (auto* buffer : {&state_, &normed_state_}) *buffer = ops_.make_buffer(rows, config_.target_hidden);
  }
  for (auto* buffer : {&features_, &inputs_, &embedded_, &scratch_, &x_}) *buffer = ops_.make_buffer(rows, hidden);
  wide_ = ops_.make_buffer(rows, 2 * hidden);
  qkv_ = ops_.make_buffer(rows, attention.qkv_width());
  attention_ = ops_.make_buffer(rows, attention.q_width());
  gate_up_ = ops_.make_buffer(rows, 2 * config_.ffn);
  activated_ = ops_.make_buffer(rows, config_.ffn);
  logits_rows_ = ops_.make_buffer(limits_.max_logits_rows, hidden);
  normed_ = ops_.make_buffer(limits_.max_logits_rows, hidden);
  if (config_.kind != HeadKind::kPrefix) logits_ = ops_.make_buffer(limits_.max_logits_rows, output_.n());
}

void DraftHead::take_states(const backend::Buffer& states, std::span<const std::uint32_t> rows) {
  num_taken_ = count(rows.size());
  if (rows.empty()) return;
  if (!config_.fuses_states()) return mover_.pick(states, rows, *features_);
  mover_.pick(states, rows, *picked_);
  if (weights_.states_norm) {
    ops_.norm(*picked_, norm_of(weights_.states_norm), num_taken_, *normed_states_);
  }
  norm_each_state();
  ops_.linear(normed_states_ ? *normed_states_ : *picked_, *weights_.fc, num_taken_, *features_);
}

void DraftHead::norm_each_state() {
  for (std::uint32_t i = 0; i < weights_.state_norms.size(); ++i) {
    const std::uint32_t column = i * config_.target_hidden;
    ops_.cut(*picked_, num_taken_, column, *state_);
    ops_.norm(*state_, norm_of(weights_.state_norms[i]), num_taken_, *normed_state_);
    ops_.place(*normed_state_, num_taken_, column, *normed_states_);
  }
}

void DraftHead::read_features(std::uint32_t first, std::uint32_t num, std::span<float> out) const {
  CHECK_LE(first + num, num_taken_);
  ops_.read(*features_, first, num, out);
}

void DraftHead::begin_with_features() { ops_.place(*features_, num_taken_, 0, *inputs_); }

void DraftHead::begin_with_features(std::span<const std::uint32_t> rows) { mover_.pick(*features_, rows, *inputs_); }

void DraftHead::begin_with_outputs(std::span<const std::uint32_t> rows) { mover_.pick(*x_, rows, *inputs_); }

void DraftHead::begin_with_host(std::span<const float> rows) { ops_.write(rows, *inputs_); }

void DraftHead::begin_with_zeros(std::uint32_t num_rows) { mover_.take_first(*nothing_, num_rows, *inputs_); }

void DraftHead::store(const backend::Batch& batch) {
  if (batch.num_rows() == 0) return;
  run_layers(batch, /*store_only=*/true);
  ops_.collect({});
}

void DraftHead::run_prefix(const backend::Batch& batch) {
  const std::uint32_t logits_rows = count(batch.logits_rows.size());
  CHECK_LE(logits_rows, limits_.max_logits_rows);
  run_layers(batch, /*store_only=*/false);
  ops_.gather_logits_rows(*x_, *logits_rows_);
  ops_.norm(*logits_rows_, norm_of(weights_.norm), logits_rows, *normed_);
  ops_.collect({});
}

void DraftHead::run(const backend::Batch& batch, std::span<backend::Choice> choices) {
  run_layers(batch, /*store_only=*/false);
  choose(batch);
  if (weights_.output_norm) {
    ops_.norm(*x_, norm_of(weights_.output_norm), batch.num_rows(), *scratch_);
    ops_.place(*scratch_, batch.num_rows(), 0, *x_);
  }
  ops_.collect(choices);
}

void DraftHead::read_logits(std::uint32_t num_logits_rows, std::span<float> out) const {
  ops_.read(*logits_, 0, num_logits_rows, out);
}

// With store_only it stops after the last layer's K and V: later rows read nothing else of these rows.
void DraftHead::run_layers(const backend::Batch& batch, bool store_only) {
  ops_.begin(batch);
  open_first(batch.num_rows());
  for (const model::Layer& layer : layers_) {
    const bool first = layer.attention.layer == 0;
    if (!first) {
      ops_.linear(*x_, layer.qkv, batch.num_rows(), *qkv_, {layer.input_norm, scratch_.get()},
                  backend::ThenRopeStore{&layer.attention, cache_.get()});
    }
    if (first) ops_.rope_store(layer.attention, *qkv_, *cache_);
    if (store_only && &layer == &layers_.back()) return;
    attend_and_go_on(layer, batch.num_rows());
  }
}

// Computes the first layer's q, k and v, and the residual x that its output is added to.
void DraftHead::open_first(std::uint32_t rows) {
  const HeadLayer& first = weights_.layers.front();
  if (config_.kind == HeadKind::kPrefix) {
    ops_.place(*inputs_, rows, 0, *x_);
    ops_.norm(*x_, norm_of(first.input_norm), rows, *scratch_);
    return ops_.linear(*scratch_, *first.qkv, rows, *qkv_);
  }
  ops_.embed(embed_, 1.0f, *embedded_);
  if (config_.kind == HeadKind::kEagle) {
    ops_.place(*embedded_, rows, 0, *wide_);
    ops_.place(*inputs_, rows, config_.hidden, *wide_);
    ops_.linear(*wide_, *weights_.fc, rows, *x_);
    if (first.input_norm) ops_.norm(*x_, norm_of(first.input_norm), rows, *scratch_);
    ops_.linear(first.input_norm ? *scratch_ : *x_, *first.qkv, rows, *qkv_);
    return;
  }
  ops_.norm(*embedded_, norm_of(first.input_norm), rows, *scratch_);
  ops_.place(*scratch_, rows, 0, *wide_);
  ops_.norm(*inputs_, norm_of(first.feature_norm), rows, *scratch_);
  ops_.place(*scratch_, rows, config_.hidden, *wide_);
  ops_.place(config_.norm_before_residual ? *scratch_ : *inputs_, rows, 0, *x_);
  ops_.linear(*wide_, *first.qkv, rows, *qkv_);
}

void DraftHead::attend_and_go_on(const model::Layer& layer, std::uint32_t rows) {
  ops_.attend(layer.attention, *qkv_, *cache_, *attention_);
  ops_.linear(*attention_, layer.out, rows, *scratch_, {}, backend::ThenAdd{x_.get()});
  ops_.linear(*x_, layer.gate_up, rows, *gate_up_, {layer.mlp_norm, scratch_.get()},
              backend::ThenActivate{activated_.get()});
  ops_.linear(*activated_, layer.down, rows, *scratch_, {}, backend::ThenAdd{x_.get()});
}

void DraftHead::choose(const backend::Batch& batch) {
  const std::uint32_t logits_rows = count(batch.logits_rows.size());
  CHECK_LE(logits_rows, limits_.max_logits_rows);
  if (logits_rows == 0) return;
  ops_.gather_logits_rows(*x_, *logits_rows_);
  if (weights_.norm) ops_.norm(*logits_rows_, norm_of(weights_.norm), logits_rows, *normed_);
  ops_.linear(weights_.norm ? *normed_ : *logits_rows_, output_, logits_rows, *logits_, {},
              backend::ThenChoose{config_.draft_vocab});
}

}  // namespace quire::speculate
