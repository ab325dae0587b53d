// The decoder, one implementation for every architecture and backend: it runs a ModelSpec, its layers as data, by ops
// in the order that spec.h gives for each placement of norms.
//   x = embed · scale;  layers;  logits = cap(norm(x of the logits rows) · Whead · scale); one sampled token from each
// Shape   x [T,E], qkv [T,(H+2G)·D], gate_up [T,2F], logits [R,V].
// Owner   owns weights and RoPE tables; Ops must outlive it. ModelFiles is used by the constructor only.
// Thread  made at start; forward() on the engine thread.
// Fails   StartError from the constructor: every problem of the checkpoint at once, before anything is packed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/batch.h"
#include "core/backend/ops.h"
#include "core/model/layer.h"
#include "core/model/source/model_files.h"
#include "core/model/spec.h"
#include "core/model/weights.h"
#include "core/model/workspace.h"

namespace quire::model {

// The parts of a layer that a self-draft runs. A part that is left out adds nothing to the residual stream and stores
// no K and V.
struct LayerParts {
  bool attention = true;
  bool mlp = true;
};

class Decoder {
 public:
  // max_model_len: positions the rope table covers, 1 .. config.max_model_len().
  Decoder(backend::Ops& ops, const ModelSpec& config, const ModelFiles& files, std::uint32_t max_model_len,
          const LoadOptions& options = {});
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  Workspace make_workspace(std::uint32_t max_rows, std::uint32_t max_logits_rows, const Captures& captures = {}) const;

  // Begins the step and queues all its ops; StepOps::collect() returns the choices. The logits are left in
  // workspace.logits and, with `norms_all`, what the head would take of every row in workspace.last().
  void forward(const backend::Batch& batch, backend::KvCache& cache, Workspace& workspace,
               bool norms_all = false) const;
  // As forward(), with only these parts of the layers [L]; final norm and head as in forward(). Captures nothing. No
  // attention reads K and V of a layer whose attention is left out.
  void forward_parts(const backend::Batch& batch, backend::KvCache& cache, Workspace& workspace,
                     std::span<const LayerParts> parts) const;

  const ModelSpec& config() const { return spec_; }
  // Weights that a draft head may share.
  const backend::Weight& embedding() const { return weights_.weight(Role::kEmbedding); }
  const backend::Weight& output() const { return weights_.output(); }
  std::uint32_t max_model_len() const { return max_model_len_; }
  std::size_t packed_bytes() const { return weights_.packed_bytes(); }
  std::size_t step_bytes() const { return weights_.step_bytes(); }
  // Type of the layers' matrices; embedding and output matrix may keep more bits (quantize_of()).
  backend::Format weight_format() const { return weight_format_; }
  std::optional<BlockActivation> block_activation() const { return weights_.block_activation(); }
  std::uint64_t checkpoint_digest() const { return weights_.digest(); }
  bool from_packed_file() const { return weights_.from_packed_file(); }

 private:
  // The rows that attention or the MLP of a layer takes, and the norm that its product begins with.
  struct Input {
    const backend::Buffer* rows;
    backend::Before before;
  };

  Layer make_layer(std::uint32_t index);
  backend::AttentionSpec make_attention(std::uint32_t index);
  const backend::RopeTable* rope_of(const AttentionLayer& attention);
  const backend::Vector* position_scale(const PositionScale& scale);
  const backend::Vector* slopes(const AlibiSpec& alibi, std::uint32_t num_heads);
  backend::Xielu xielu_of(std::uint32_t layer) const;
  const backend::Vector* ones(std::uint32_t size);
  // `width`: of a norm without a scale in the checkpoint.
  backend::Norm norm_of(const NormSpec& norm, Role role, std::uint32_t width, std::uint32_t layer = Weights::kTop);
  backend::HeadNorm heads_norm(const std::optional<HeadNormSpec>& heads, Role role, std::uint32_t width,
                               std::uint32_t layer);

  void embed(std::uint32_t rows, Workspace& workspace) const;
  void embed_per_layer(std::uint32_t rows, Workspace& workspace) const;
  void run(std::uint32_t index, LayerParts parts, std::uint32_t rows, backend::KvCache& cache,
           Workspace& workspace) const;
  std::pair<Input, Input> inputs_of(const Layer& layer, std::uint32_t rows, Workspace& workspace) const;
  // The beginning of a layer's last products: the norm of their rows, if there is one.
  static backend::Before inner(const backend::Norm& norm, const backend::Buffer& rows, const Workspace& workspace);
  void attend(const Layer& layer, const Input& in, std::uint32_t rows, backend::KvCache& cache,
              Workspace& workspace) const;
  void add_per_layer(const Layer& layer, std::uint32_t index, std::uint32_t rows, Workspace& workspace) const;
  // The layer's embeddings, gated by x: [T, P].
  backend::Buffer& gated_per_layer(const Layer& layer, std::uint32_t index, std::uint32_t rows,
                                   Workspace& workspace) const;
  void run_on_streams(std::uint32_t index, LayerParts parts, std::uint32_t rows, backend::KvCache& cache,
                      Workspace& workspace) const;
  void feed_forward(const Layer& layer, const Input& in, std::uint32_t rows, Workspace& workspace) const;
  // The output of a layer's MLP without its last product.
  const backend::Buffer& activate(const Layer& layer, const Input& in, std::uint32_t rows, Workspace& workspace) const;
  void mix_experts(const Layer& layer, const Input& in, std::uint32_t rows, Workspace& workspace) const;
  // x += s·norm(W·in), or x = norm(x + s·W·in).
  void add_product(const Layer& layer, const backend::Buffer& in, const backend::WeightList& weights,
                   const backend::Before& before, const backend::Norm& norm, std::uint32_t rows,
                   Workspace& workspace) const;
  // The rows that the head takes: the final norm's output, or its projection [rows, W], if there is a buffer for it.
  const backend::Buffer& norm_last(const backend::Buffer& x, std::uint32_t rows, backend::Buffer& normed,
                                   backend::Buffer* narrow) const;
  void capture(std::uint32_t boundary, std::uint32_t num_rows, Workspace& workspace) const;
  void add_logits_row(const backend::Batch& batch, Workspace& workspace) const;

  backend::Ops& ops_;
  ModelSpec spec_;
  std::uint32_t max_model_len_;
  std::vector<std::unique_ptr<backend::RopeTable>> ropes_;  // [spec_.ropes]; null until a layer has it
  std::vector<std::pair<PositionScale, std::unique_ptr<backend::Vector>>> position_scales_;
  std::vector<std::pair<AlibiSpec, std::unique_ptr<backend::Vector>>> slopes_;
  std::vector<std::unique_ptr<backend::Vector>> ones_;
  Weights weights_;
  backend::Format weight_format_;
  std::vector<Layer> layers_;                // [L] borrows the tables and weights_
  backend::Norm final_norm_;                 // no scale: the model has none
  backend::Norm embedding_norm_;             // no scale: the model has no such norm
  backend::Norm per_layer_projection_norm_;  // [P] likewise
};

}  // namespace quire::model
