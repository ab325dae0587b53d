// Norms, and the attention of one layer, as data: shapes, norms of the heads, positions, and what of the cache is seen.
// Owner   the caller owns the objects pointed to; the spec borrows them.
#pragma once

#include <cstdint>

#include "core/backend/tensors.h"

namespace quire::backend {

enum class NormKind : std::uint8_t { kRms, kLayer };

// Equations: StepOps::norm().
struct Norm {
  const Vector* scale = nullptr;  // [width]; null: no norm
  float eps = 0.0f;
  NormKind kind = NormKind::kRms;
  const Vector* bias = nullptr;  // [width], kLayer only; null: none

  explicit operator bool() const { return scale != nullptr; }
};

// The norm of the heads of q, k or v: of each head by itself, with one scale for all [D] or one for each [heads·D]; or
// of all heads of a row as one row [heads·D].
struct HeadNorm {
  Norm norm{};
  bool whole_row = false;
  std::uint32_t first =
      0;  // a scale for each head: index in norm.scale of the first head's (a shard's heads are later)

  explicit operator bool() const { return static_cast<bool>(norm); }
};

// Biases of scores by position (ALiBi): StepOps::attend().
struct PositionBias {
  const Vector* slopes = nullptr;  // of each query head; null: no biases
  std::uint32_t first = 0;         // index in it of the first head's (a shard's heads are later)
  bool in_bf16 = false;            // slopes, positions and their products are rounded to bf16

  explicit operator bool() const { return slopes != nullptr; }
};

// Scores of each head that belong to no position: they take a part of the softmax, and weigh no value.
struct HeadSinks {
  const Vector* scores = nullptr;  // of each query head; null: none
  std::uint32_t first = 0;         // index in it of the first head's (a shard's heads are later)

  explicit operator bool() const { return scores != nullptr; }
};

struct AttentionSpec {
  std::uint32_t layer = 0;         // index of the layer in the KV cache
  std::uint32_t num_heads = 0;     // H
  std::uint32_t num_kv_heads = 0;  // G, divides H; query head h reads kv head h / (H/G)
  std::uint32_t head_dim = 0;      // D, even
  std::uint32_t latent = 0;        // not 0, G = 1: k is one row [D] for all heads, and v its last `latent` numbers
  float scale = 1.0f;              // scores are q·k * scale
  std::uint32_t window = 0;        // a row attends to the last `window` positions, its own included; 0: all
  float softcap = 0.0f;            // scores are softcap · tanh(score / softcap); 0: as they are
  PositionBias bias{};
  HeadSinks sinks{};
  HeadNorm q_norm{};
  HeadNorm k_norm{};
  bool norms_after_rope = false;  // of q and k, which are RMS norms of each head with one scale for all then
  HeadNorm v_norm{};
  const RopeTable* rope = nullptr;  // null: no rotation. It may turn the first dimensions of a head only.
  const Vector* q_scale = nullptr;  // [positions] q is multiplied by it after rope; null: not at all
  float k_factor = 1.0f;            // k and v are multiplied by these before they are stored
  float v_factor = 1.0f;
  bool stores = true;  // false: qkv is q alone, and K and V are those that another layer has stored

  std::uint32_t q_width() const { return num_heads * head_dim; }
  std::uint32_t kv_width() const { return num_kv_heads * head_dim; }
  std::uint32_t qkv_width() const { return q_width() + (!stores ? 0 : latent != 0 ? head_dim : 2 * kv_width()); }
  std::uint32_t value_dim() const { return latent != 0 ? latent : head_dim; }
  std::uint32_t out_width() const { return num_heads * value_dim(); }
};

}  // namespace quire::backend
