// Rows of a step as kernels see them, and how a row finds the positions that it sees.
// Shape   a RowOfBatch for each of T rows.
// Thread  host and device; pure.
#pragma once

#include "core/sample/math.h"
#include "gpu/device/kv_codes.h"

namespace quire::gpu {

inline constexpr std::uint32_t kUnseen = ~0u;

// Fields of backend::SequenceRows, and what else a kernel needs of the batch, for each row.
struct RowOfBatch {
  static constexpr std::uint32_t kNobody = ~0u;
  std::uint32_t position = 0;
  std::uint32_t slot = 0;  // kNobody: the row is padding of a grid
  std::uint32_t first_table = 0;
  std::uint32_t first_kept = 0;
  std::uint32_t num_kept = 0;
  // Draft tree's node: it sees all positions up to here, and of those behind only its ancestors.
  std::uint32_t root_position = 0;
  std::uint64_t ancestors = 0;  // bit by node, itself included; 0: no node, it sees all positions up to its own
  std::uint32_t first_row = 0;  // of its sequence
  std::uint32_t first_position = 0;
  std::uint32_t residual_group = 0;
  std::uint32_t first_accumulated_score = 0;
  std::uint32_t num_accumulated_scores = 0;  // 0: not wanted
};

// The RMS norm of each head with one scale for all of them; other norms are kernels of their own, before RopeStore.
struct NormView {
  const float* scale = nullptr;  // null: no norm
  float eps = 0.0f;
};

struct AttentionView {
  std::uint32_t num_heads = 0;
  std::uint32_t num_kv_heads = 0;
  std::uint32_t head_dim = 0;
  float scale = 1.0f;
  std::uint32_t window = 0;
  float softcap = 0.0f;
  const float* slopes = nullptr;  // [H] ALiBi; null: no biases
  bool biases_in_bf16 = false;
  const float* sinks = nullptr;  // [H] scores that belong to no position; null: none
  NormView q_norm;
  NormView k_norm;
  bool norms_after_rope = false;
  const float* cosines = nullptr;  // [positions, half]
  const float* sines = nullptr;
  std::uint32_t half = 0;          // 0: no rotation
  const float* q_scale = nullptr;  // [positions]; null: none
  float k_factor = 1.0f;
  float v_factor = 1.0f;
  bool stores = true;  // false: qkv is q alone

  QUIRE_DEVICE std::uint32_t width() const { return (num_heads + (stores ? 2 * num_kv_heads : 0)) * head_dim; }
  QUIRE_DEVICE bool finishes_scores() const { return softcap != 0.0f || slopes != nullptr; }
  // The scaled score of a head's row at one position and of K at another, which the row sees: capped, and with its
  // bias.
  QUIRE_DEVICE float finished(float z, std::uint32_t head, std::uint32_t row_position, std::uint32_t position) const {
    if (softcap != 0.0f) z = softcap * sample::tanh_f32(quotient(z, softcap));
    if (slopes == nullptr) return z;
    if (!biases_in_bf16) return fma(slopes[head], -static_cast<float>(row_position - position), z);
    return fma(as_bf16(slopes[head] * as_bf16(static_cast<float>(position))), scale, z);
  }
  QUIRE_DEVICE static float as_bf16(float x) { return f32_of_bits(std::uint32_t{bf16_of_f32(x)} << 16); }
  QUIRE_DEVICE std::uint32_t heads_of_group() const { return num_heads / num_kv_heads; }
  QUIRE_DEVICE std::uint32_t k_column(std::uint32_t kv_head) const { return (num_heads + kv_head) * head_dim; }
  QUIRE_DEVICE std::uint32_t v_column(std::uint32_t kv_head) const {
    return (num_heads + num_kv_heads + kv_head) * head_dim;
  }
};

constexpr std::uint32_t lowest_seen(std::uint32_t position, std::uint32_t window) {
  return window == 0 || position < window ? 0 : position - window + 1;
}

// Arrays of a step that the indices of a RowOfBatch refer to.
struct BatchView {
  const RowOfBatch* rows = nullptr;
  const std::uint32_t* block_tables = nullptr;
  const std::uint16_t* kept_groups = nullptr;
};

// Kept groups of a span for the row's sequence, bit by group.
QUIRE_DEVICE std::uint32_t groups_kept(const BatchView& batch, const RowOfBatch& row, std::uint32_t span) {
  return span < row.num_kept ? batch.kept_groups[row.first_kept + span] : 0xffffu;
}

QUIRE_DEVICE std::uint32_t lowest_bit(std::uint64_t bits) {
  std::uint32_t bit = 0;
  while ((bits >> bit & 1u) == 0) ++bit;
  return bit;
}

// Slot of a position in a kept group. A node's ancestors, in the order of their numbers, take the positions behind the
// root one after another; node i is stored i + 1 behind the root. kUnseen behind the node itself.
QUIRE_DEVICE std::uint32_t slot_of(const BatchView& batch, const KvLayout& layout, const RowOfBatch& row,
                                   std::uint32_t position) {
  std::uint32_t stands_at = position;
  if (row.ancestors != 0 && position > row.root_position) {
    if (position > row.position) return kUnseen;
    std::uint64_t left = row.ancestors;
    for (std::uint32_t i = row.root_position + 1; i < position; ++i) left &= left - 1;
    stands_at = row.root_position + 1 + lowest_bit(left);
  }
  const std::uint32_t block = batch.block_tables[row.first_table + stands_at / layout.block_tokens];
  return block * layout.block_tokens + stands_at % layout.block_tokens;
}

// int4: a position of the row's own group as it was before storing, k and v [D] in f32, from this step's rows or from
// the residual group as the step found it.
struct OwnRow {
  const float* k;
  const float* v;
};
QUIRE_DEVICE OwnRow own_row(const AttentionView& spec, const KvView& kv, const float* qkv, const RowOfBatch& row,
                            std::uint32_t kv_head, std::uint32_t position) {
  if (position < row.first_position) {
    const float* k = kv.found_row(row.residual_group, kv_head, position);
    return {k, k + spec.head_dim};
  }
  const float* x = qkv + std::size_t{row.first_row + (position - row.first_position)} * spec.width();
  return {x + spec.k_column(kv_head), x + spec.v_column(kv_head)};
}
QUIRE_DEVICE bool in_own_group(const KvLayout& layout, const RowOfBatch& row, std::uint32_t position) {
  return layout.type == backend::KvType::kInt4 && position / KvLayout::kGroup == row.position / KvLayout::kGroup;
}

// round(exp(z - max) / sum · 2^32) as an integer: sums of these are the same in every order. A NaN adds 0.
QUIRE_DEVICE std::uint64_t accumulated_score_of(float weight, float inverse) {
  const double weight_q32 = static_cast<double>(weight * inverse) * 4294967296.0;
  return weight_q32 > 0.0 ? static_cast<std::uint64_t>(weight_q32 + 0.5) : 0;
}

}  // namespace quire::gpu
