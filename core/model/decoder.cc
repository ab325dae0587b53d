#include "core/model/decoder.h"

#include <cmath>
#include <string>

#include "core/base/check.h"
#include "core/base/start_error.h"
#include "core/model/rope.h"

namespace quire::model {

Decoder::Decoder(backend::Ops& ops, const Config& config, const ModelFiles& files, std::uint32_t max_model_len,
                 backend::Quantize quantize, const std::string& packed_file)
    : ops_(ops), config_(config), max_model_len_(max_model_len) {
  if (max_model_len == 0 || max_model_len > config.max_model_len()) {
    throw StartError("max-model-len " + std::to_string(max_model_len) + " is outside [1, " +
                     std::to_string(config.max_model_len()) + "], the range of this model's positions");
  }
  weights_ = load_weights(ops, config, files, quantize, packed_file);
  weight_type_ = weights_.layers.empty() ? weights_.embed->type() : weights_.layers.front().qkv->type();
  const RopeAngles angles = rope_angles(config.rope, config.head_dim, max_model_len);
  rope_ = ops.upload_rope(angles.cosines, angles.sines, config.head_dim / 2);
  make_layers();
}

Workspace Decoder::make_workspace(std::uint32_t max_rows, std::uint32_t max_logits_rows,
                                  const Captures& captures) const {
  const std::uint32_t q_width = config_.num_heads * config_.head_dim;
  const std::uint32_t kv_width = config_.num_kv_heads * config_.head_dim;
  Workspace workspace;
  workspace.x = ops_.make_buffer(max_rows, config_.hidden);
  workspace.scratch = ops_.make_buffer(max_rows, config_.hidden);
  workspace.qkv = ops_.make_buffer(max_rows, q_width + 2 * kv_width);
  workspace.attention = ops_.make_buffer(max_rows, q_width);
  workspace.gate_up = ops_.make_buffer(max_rows, 2 * config_.ffn);
  workspace.activated = ops_.make_buffer(max_rows, config_.ffn);
  workspace.logits_rows = ops_.make_buffer(max_logits_rows, config_.hidden);
  workspace.normed = ops_.make_buffer(max_logits_rows, config_.hidden);
  workspace.logits = ops_.make_buffer(max_logits_rows, config_.vocab);
  workspace.captures = captures;
  if (captures.num() > 0) workspace.states = ops_.make_buffer(max_rows, captures.num() * config_.hidden);
  return workspace;
}

void Decoder::capture(std::uint32_t boundary, std::uint32_t num_rows, Workspace& workspace) const {
  const std::vector<std::uint32_t>& wanted = workspace.captures.boundaries;
  for (std::uint32_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == boundary) ops_.place(*workspace.x, num_rows, i * config_.hidden, *workspace.states);
  }
}

void Decoder::forward(const backend::Batch& batch, backend::KvCache& cache, Workspace& workspace,
                      bool norms_all) const {
  ops_.begin(batch);
  ops_.embed(*weights_.embed, *workspace.x);
  for (const backend::LayerSpec& layer : layers_) {
    capture(layer.attention.layer, batch.num_rows(), workspace);
    attend(layer, cache, workspace);
    feed_forward(layer, workspace);
  }
  capture(config_.num_layers, batch.num_rows(), workspace);
  if (workspace.captures.final_norm) {
    ops_.norm(*workspace.x, *weights_.norm, config_.norm_eps, batch.num_rows(), *workspace.states);
  }
  if (norms_all) {
    ops_.norm(*workspace.x, *weights_.norm, config_.norm_eps, batch.num_rows(), *workspace.scratch);
  }
  speak(batch, workspace);
}

void Decoder::forward_parts(const backend::Batch& batch, backend::KvCache& cache, Workspace& workspace,
                            std::span<const LayerParts> parts) const {
  CHECK_EQ(parts.size(), layers_.size());
  ops_.begin(batch);
  ops_.embed(*weights_.embed, *workspace.x);
  for (std::size_t index = 0; index < parts.size(); ++index) {
    if (parts[index].attention) attend(layers_[index], cache, workspace);
    if (parts[index].mlp) feed_forward(layers_[index], workspace);
  }
  speak(batch, workspace);
}

void Decoder::attend(const backend::LayerSpec& layer, backend::KvCache& cache, Workspace& workspace) const {
  ops_.norm_qkv_rope_store(layer, *workspace.x, *workspace.scratch, *workspace.qkv, cache);
  ops_.attend(layer.attention, *workspace.qkv, cache, *workspace.attention);
  ops_.project_add(*workspace.attention, *layer.out, *workspace.scratch, *workspace.x);
}

void Decoder::feed_forward(const backend::LayerSpec& layer, Workspace& workspace) const {
  ops_.norm_gate_up(layer, *workspace.x, *workspace.scratch, *workspace.gate_up, *workspace.activated);
  ops_.project_add(*workspace.activated, *layer.down, *workspace.scratch, *workspace.x);
}

void Decoder::speak(const backend::Batch& batch, Workspace& workspace) const {
  const auto num_logits_rows = static_cast<std::uint32_t>(batch.logits_rows.size());
  if (num_logits_rows == 0) return;
  ops_.gather_logits_rows(*workspace.x, *workspace.logits_rows);
  ops_.norm(*workspace.logits_rows, *weights_.norm, config_.norm_eps, num_logits_rows, *workspace.normed);
  ops_.project_choose(*workspace.normed, weights_.output(), config_.vocab, *workspace.logits);
}

void Decoder::make_layers() {
  for (std::uint32_t index = 0; index < config_.num_layers; ++index) {
    const LayerWeights& weights = weights_.layers[index];
    backend::LayerSpec layer;
    layer.attention.layer = index;
    layer.attention.num_heads = config_.num_heads;
    layer.attention.num_kv_heads = config_.num_kv_heads;
    layer.attention.head_dim = config_.head_dim;
    layer.attention.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config_.head_dim)));
    layer.attention.window = config_.windows[index];
    layer.attention.norm_eps = config_.norm_eps;
    layer.attention.q_norm = weights.q_norm.get();
    layer.attention.k_norm = weights.k_norm.get();
    layer.attention.rope = rope_.get();
    layer.norm_eps = config_.norm_eps;
    layer.input_norm = weights.input_norm.get();
    layer.qkv = weights.qkv.get();
    layer.out = weights.out.get();
    layer.post_norm = weights.post_norm.get();
    layer.gate_up = weights.gate_up.get();
    layer.down = weights.down.get();
    layers_.push_back(layer);
  }
}

}  // namespace quire::model
