// Latent attention (MLA): K and V of all heads are products of one latent of each position, which the cache holds once
// beside the part of K that turns. The products are absorbed: a query is taken into the latent's space, and the sum of
// latents out of it, for every row alike, so that tokens do not depend on chunks.
//   [q' | r | c] = W·x;  q = Wq·norm(q');  c = norm(c)                        q' is q itself without a query rank
//   of each head h: s_h = [turn(q_h's R) | Wk_hᵀ·q_h's N];  o_h = attend(s_h) over rows [turn(r) | c], of which c are
//   the values;  y_h = Wv_h·o_h
// Shape   H heads, C rank of the latent, R columns that turn, N columns of q that meet the latent, V of a head's
//         values; queries and rows of the cache [R + C].
// Owner   a layer borrows weights; the workspace of a step owns the buffers; attend_latent() queues ops.
// Thread  made at start; attend_latent() engine.
// Source  DeepSeek-V2 (DeepSeek-AI 2024), section 2.1 and appendix C; absorbed everywhere is ours.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/backend/ops.h"
#include "core/model/spec.h"
#include "core/model/weights.h"

namespace quire::model {

struct LatentAttention {
  LatentSpec spec;
  backend::WeightList query{};                // [H·N + H·R, query rank]; empty: q is part of the first product
  backend::Norm query_norm{};                 // [query rank]
  backend::Norm norm{};                       // [C]
  std::vector<backend::WeightList> keys{};    // [H] of [C, N]
  std::vector<backend::WeightList> values{};  // [H] of [V, C]
};

LatentAttention make_latent(const Weights& weights, const AttentionLayer& attention, std::uint32_t layer);

// For layers of one shape.
class LatentBuffers {
 public:
  LatentBuffers() = default;
  LatentBuffers(backend::Factory& factory, const AttentionLayer& attention, std::uint32_t max_rows);

 private:
  friend const backend::Buffer& attend_latent(backend::Ops& ops, const LatentAttention& latent,
                                              const backend::AttentionSpec& attention, const backend::Buffer& product,
                                              std::uint32_t rows, backend::KvCache& cache,
                                              const LatentBuffers& buffers);

  std::unique_ptr<backend::Routes> heads_;     // of every row all heads
  std::unique_ptr<backend::Buffer> low_;       // [T, query rank]
  std::unique_ptr<backend::Buffer> query_;     // [T, H·N + H·R]
  std::unique_ptr<backend::Buffer> kv_;        // [T, R + C]
  std::unique_ptr<backend::Buffer> qkv_;       // [T, H·(R + C) + R + C]
  std::unique_ptr<backend::Buffer> attended_;  // [T, H·C]
  std::unique_ptr<backend::Buffer> nope_;      // [T·H, N]
  std::unique_ptr<backend::Buffer> rope_;      // [T·H, R]
  std::unique_ptr<backend::Buffer> latent_;    // [T·H, C]
  std::unique_ptr<backend::Buffer> value_;     // [T·H, V]
  std::unique_ptr<backend::Buffer> values_;    // [T, H·V]
};

// `product`: of the layer's first matrices [T, (query rank or H·N + H·R) + R + C]. Returns y [T, H·V].
const backend::Buffer& attend_latent(backend::Ops& ops, const LatentAttention& latent,
                                     const backend::AttentionSpec& attention, const backend::Buffer& product,
                                     std::uint32_t rows, backend::KvCache& cache, const LatentBuffers& buffers);

}  // namespace quire::model
