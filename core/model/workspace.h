// The row buffers of one step in flight, and the hidden states that it captures.
// Shape   letters as in decoder.h; R logits rows.
// Owner   the caller of make_workspace(); the factory must outlive it.
// Thread  made at start; then the engine thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/backend/ops.h"
#include "core/model/latent.h"
#include "core/model/layer.h"
#include "core/model/mixture.h"
#include "core/model/spec.h"
#include "core/model/streams.h"

namespace quire::model {

// Hidden states of every row of a step that are captured for a drafter, side by side: the residual stream at layer
// boundaries (boundary b is before layer b, num_layers after the last layer), or instead the output of the final norm.
struct Captures {
  std::vector<std::uint32_t> boundaries{};
  bool final_norm = false;
  std::uint32_t num() const { return final_norm ? 1 : static_cast<std::uint32_t>(boundaries.size()); }
};

// Row buffers of one kind, one for each width that layers have.
class BuffersByWidth {
 public:
  void add(backend::Factory& factory, std::uint32_t max_rows, std::uint32_t width);  // if there is none
  backend::Buffer& of(std::uint32_t width) const;

 private:
  std::vector<std::unique_ptr<backend::Buffer>> buffers_;
};

// The row buffers of one step in flight.
struct Workspace {
  std::unique_ptr<backend::Buffer> x;            // [T, E] the residual stream
  std::unique_ptr<backend::Buffer> normed;       // [T, E]
  std::unique_ptr<backend::Buffer> mlp_normed;   // [T, E] if a layer is kParallelNorms
  std::unique_ptr<backend::Buffer> product;      // [T, E]
  BuffersByWidth qkv;                            // [T, (H+2G)·D]
  BuffersByWidth attention;                      // [T, H·D]
  BuffersByWidth gate_up;                        // [T, 2F]; not gated [T, F]
  BuffersByWidth activated;                      // [T, F]
  BuffersByWidth inner_normed;                   // [T, H·D], [T, F] of layers with inner norms
  std::unique_ptr<backend::Buffer> per_layer;    // [T, L·P] of PerLayerEmbedding; null: the model has none
  std::unique_ptr<backend::Buffer> projected;    // [T, L·P]
  std::unique_ptr<backend::Buffer> logits_rows;  // [R, E]
  std::unique_ptr<backend::Buffer> normed_rows;  // [R, E]
  std::unique_ptr<backend::Buffer> logits;       // [R, V]
  std::unique_ptr<backend::Buffer> narrow;       // [T, W] of ModelSpec::projects_embedding(); otherwise null
  std::unique_ptr<backend::Buffer> narrow_rows;  // [R, W] likewise
  StreamBuffers streams;                         // of AltUpSpec; empty: the model has none
  MixtureBuffers experts;                        // of MixtureSpec; empty: the model has none
  LatentBuffers latent;                          // of LatentSpec; empty: the model has none
  Captures captures;
  std::unique_ptr<backend::Buffer> states;  // [T, captures · E]; null: no captures

  const backend::Buffer& last() const { return narrow ? *narrow : *normed; }  // of forward() with norms_all
};

Workspace make_workspace(backend::Factory& factory, const ModelSpec& spec, std::span<const Layer> layers,
                         std::uint32_t max_rows, std::uint32_t max_logits_rows, const Captures& captures);

}  // namespace quire::model
