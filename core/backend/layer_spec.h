// What one decoder layer is, as data: shapes, weights, and which of the optional parts it has.
// A new architecture is another LayerSpec or another plain op, never a flag inside a fused op.
// Owner   the decoder owns what the pointers name; the spec borrows.
#pragma once

#include <cstdint>

#include "core/backend/tensors.h"

namespace quire::backend {

struct AttentionSpec {
  std::uint32_t layer = 0;         // which layer of the KV cache
  std::uint32_t num_heads = 0;     // H
  std::uint32_t num_kv_heads = 0;  // G, divides H; query head h reads kv head h / (H/G)
  std::uint32_t head_dim = 0;      // D, even
  float scale = 1.0f;              // scores are q·k * scale
  std::uint32_t window = 0;        // a row sees the last `window` positions, its own included; 0: all
  float norm_eps = 0.0f;           // of q_norm and k_norm
  const Vector* q_norm = nullptr;  // [D] RMS norm over each query head before rope; null: none
  const Vector* k_norm = nullptr;  // [D]
  const RopeTable* rope = nullptr;

  std::uint32_t q_width() const { return num_heads * head_dim; }
  std::uint32_t kv_width() const { return num_kv_heads * head_dim; }
  std::uint32_t qkv_width() const { return q_width() + 2 * kv_width(); }
};

struct LayerSpec {
  AttentionSpec attention;
  float norm_eps = 0.0f;
  const Vector* input_norm = nullptr;  // [E]
  const Weight* qkv = nullptr;         // [(H + 2G)·D, E], columns q | k | v
  const Weight* out = nullptr;         // [E, H·D]
  const Vector* post_norm = nullptr;   // [E]
  const Weight* gate_up = nullptr;     // [2F, E], columns gate | up
  const Weight* down = nullptr;        // [E, F]
};

}  // namespace quire::backend
