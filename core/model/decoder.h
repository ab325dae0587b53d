// The decoder, written once for every architecture and every backend: layers as data, ops in a fixed order.
//   x = embed;  per layer: qkv = store(rope(norm(x)·Wqkv)); x += attend(qkv)·Wo; x += act(norm(x)·Wgate|up)·Wdown
//   logits = norm(x of the logits rows) · Whead, a choice from each
// Shape   x [T,E], qkv [T,(H+2G)·D], gate_up [T,2F], logits [R,V].
// Owner   the decoder owns weights and rope table; the Ops must outlive it. ModelFiles: for the constructor only.
// Thread  made while starting; forward() on the engine thread.
// Fails   StartError from the constructor: every problem of the checkpoint at once, before anything is packed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/backend/batch.h"
#include "core/backend/layer_spec.h"
#include "core/backend/ops.h"
#include "core/model/config.h"
#include "core/model/model_files.h"
#include "core/model/weights.h"

namespace quire::model {

// Of every row of a step, for who drafts: states of the residual stream, side by side; boundary b stands before layer
// b, and num_layers behind the last one. Or instead the last of them, as the final norm leaves it.
struct Captures {
  std::vector<std::uint32_t> boundaries{};
  bool final_norm = false;
  std::uint32_t num() const { return final_norm ? 1 : static_cast<std::uint32_t>(boundaries.size()); }
};

// The row buffers of one step in flight.
struct Workspace {
  std::unique_ptr<backend::Buffer> x;            // [T, E] the residual stream
  std::unique_ptr<backend::Buffer> scratch;      // [T, E]
  std::unique_ptr<backend::Buffer> qkv;          // [T, (H+2G)·D]
  std::unique_ptr<backend::Buffer> attention;    // [T, H·D]
  std::unique_ptr<backend::Buffer> gate_up;      // [T, 2F]
  std::unique_ptr<backend::Buffer> activated;    // [T, F]
  std::unique_ptr<backend::Buffer> logits_rows;  // [R, E]
  std::unique_ptr<backend::Buffer> normed;       // [R, E]
  std::unique_ptr<backend::Buffer> logits;       // [R, V]
  Captures captures;
  std::unique_ptr<backend::Buffer> states;  // [T, captures · E]; null: nothing is captured
};

// What a self-draft runs of a layer. A part that is left out adds nothing to the residual stream and stores nothing.
struct LayerParts {
  bool attention = true;
  bool mlp = true;
};

class Decoder {
 public:
  // max_model_len: positions the rope table covers, 1 .. config.max_model_len(). packed_file: as load_weights().
  Decoder(backend::Ops& ops, const Config& config, const ModelFiles& files, std::uint32_t max_model_len,
          backend::Quantize quantize = backend::Quantize::kNone, const std::string& packed_file = "");
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  Workspace make_workspace(std::uint32_t max_rows, std::uint32_t max_logits_rows, const Captures& captures = {}) const;

  // Begins the step and queues all of it; collect() has the choices. The logits rows' logits end up in
  // workspace.logits, and with `norms_all` every row's hidden state behind the final norm in workspace.scratch.
  void forward(const backend::Batch& batch, backend::KvCache& cache, Workspace& workspace,
               bool norms_all = false) const;
  // The same, of these parts alone [L]; the final norm and the head as ever.
  void forward_parts(const backend::Batch& batch, backend::KvCache& cache, Workspace& workspace,
                     std::span<const LayerParts> parts) const;

  const Config& config() const { return config_; }
  // What a draft head may share.
  const backend::Weight& embedding() const { return *weights_.embed; }
  const backend::Weight& output() const { return weights_.output(); }
  std::uint32_t max_model_len() const { return max_model_len_; }
  std::size_t packed_bytes() const { return weights_.packed_bytes(); }
  std::size_t step_bytes() const { return weights_.step_bytes(); }
  // Quantised or as stored; the embedding and the output matrix may keep more bits (quantize_of()).
  backend::WeightType weight_type() const { return weight_type_; }
  std::uint64_t checkpoint_digest() const { return weights_.digest; }
  bool from_packed_file() const { return weights_.from_packed_file; }

 private:
  void make_layers();
  void capture(std::uint32_t boundary, std::uint32_t num_rows, Workspace& workspace) const;
  void attend(const backend::LayerSpec& layer, backend::KvCache& cache, Workspace& workspace) const;
  void feed_forward(const backend::LayerSpec& layer, Workspace& workspace) const;
  void speak(const backend::Batch& batch, Workspace& workspace) const;

  backend::Ops& ops_;
  Config config_;
  std::uint32_t max_model_len_;
  std::unique_ptr<backend::RopeTable> rope_;
  Weights weights_;
  backend::WeightType weight_type_;
  std::vector<backend::LayerSpec> layers_;  // [L] borrows from weights_ and rope_
};

}  // namespace quire::model
