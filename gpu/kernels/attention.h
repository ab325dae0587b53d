// Rotation and storing of K and V, and attention over the paged cache. Equations: core/backend/ops.h, bit for bit as on the CPU.
// Shape   qkv [T, (H + 2 G) D]; a block a row and head.
// Source  PagedAttention (Kwon et al. 2023); online softmax (Milakov & Gimelshein 2018); fixed spans are ours.
#pragma once

#include "core/sample/math.h"
#include "gpu/device/numbers.h"
#include "gpu/kernels/rows.h"

namespace quire::gpu {

// backend::SequenceRows, and what a kernel wants of the batch besides, for each row.
struct RowOfBatch {
  static constexpr std::uint32_t kNobody = ~0u;
  std::uint32_t position = 0;
  std::uint32_t slot = 0;  // kNobody: the row is no sequence's, it fills up a grid
  std::uint32_t first_table = 0;
  std::uint32_t first_kept = 0;
  std::uint32_t num_kept = 0;
  std::uint32_t root_position = 0;  // of a tree's node: it sees those before it, and of the others its ancestors
  std::uint64_t ancestors = 0;      // 0: no node; it sees all up to its own
};

struct AttentionView {
  std::uint32_t layer = 0;
  std::uint32_t num_heads = 0;
  std::uint32_t num_kv_heads = 0;
  std::uint32_t head_dim = 0;
  float scale = 1.0f;
  std::uint32_t window = 0;
  float norm_eps = 0.0f;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  const float* cosines = nullptr;  // [positions, half]
  const float* sines = nullptr;
  std::uint32_t half = 0;

  QUIRE_DEVICE std::uint32_t width() const { return (num_heads + 2 * num_kv_heads) * head_dim; }
};

// grid.x: rows, grid.y: heads of q and of k.
struct RopeStore {
  struct Args {
    AttentionView spec;
    const RowOfBatch* rows = nullptr;
    float* qkv = nullptr;
    KvView kv;
  };
  static constexpr unsigned kThreads = kWarp;

  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const RowOfBatch& row = a.rows[block().x];
    if (row.slot == RowOfBatch::kNobody) return;
    const AttentionView& spec = a.spec;
    const std::uint32_t head = block().y;
    float* x = a.qkv + std::size_t{block().x} * spec.width() + head * spec.head_dim;
    const bool is_key = head >= spec.num_heads;
    turn(spec, is_key ? spec.k_norm : spec.q_norm, row.position, x);
    sync_block();
    if (!is_key) return;
    const std::uint32_t kv_head = head - spec.num_heads;
    const float* v = x + spec.num_kv_heads * spec.head_dim;
    for (std::uint32_t d = thread(); d < spec.head_dim; d += kThreads) {
      store_kv(a.kv, a.kv.layout.k_at(spec.layer, kv_head, row.slot, d), x[d]);
      store_kv(a.kv, a.kv.layout.v_at(spec.layer, kv_head, row.slot, d), v[d]);
    }
  }

 private:
  QUIRE_DEVICE static void turn(const AttentionView& spec, const float* norm, std::uint32_t position, float* x) {
    if (norm != nullptr) {
      const float factor = Norm::factor_of(x, spec.head_dim, spec.norm_eps);
      sync_block();
      for (std::uint32_t d = thread(); d < spec.head_dim; d += kThreads) x[d] = x[d] * factor * norm[d];
      sync_block();
    }
    for (std::uint32_t i = thread(); i < spec.half; i += kThreads) {
      const float cosine = spec.cosines[std::size_t{position} * spec.half + i];
      const float sine = spec.sines[std::size_t{position} * spec.half + i];
      const float low = x[i];
      const float high = x[spec.half + i];
      x[i] = fma(-high, sine, low * cosine);
      x[spec.half + i] = fma(low, sine, high * cosine);
    }
  }
};

// A row's K and V, by slot. grid.x: layers, grid.y: kv heads.
struct CopyKvRow {
  struct Args {
    KvView kv;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
  };
  static constexpr unsigned kThreads = kWarp;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const KvLayout& layout = a.kv.layout;
    for (std::uint32_t d = thread(); d < layout.head_dim; d += kThreads) {
      copy_kv(a.kv, layout.k_at(block().x, block().y, a.from, d), layout.k_at(block().x, block().y, a.to, d));
      copy_kv(a.kv, layout.v_at(block().x, block().y, a.from, d), layout.v_at(block().x, block().y, a.to, d));
    }
  }
};

// grid.x: rows, grid.y: query heads.
struct Attend {
  struct Args {
    AttentionView spec;
    const RowOfBatch* rows = nullptr;
    const std::uint32_t* block_tables = nullptr;
    const std::uint16_t* kept_groups = nullptr;
    const float* qkv = nullptr;
    KvView kv;
    float* out = nullptr;  // [T, H D]
  };
  static constexpr unsigned kThreads = backend::kSpanTokens;  // a position each
  static constexpr unsigned kMostDims = 2 * kThreads;
  static constexpr std::size_t kSharedBytes =
      kThreads * (sizeof(float) + sizeof(std::uint32_t)) + kSumLanes * sizeof(float) + kMostDims * sizeof(float);

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const AttentionView& spec = a.spec;
    const RowOfBatch& row = a.rows[block().x];
    if (row.slot == RowOfBatch::kNobody) return;
    const std::uint32_t head = block().y;
    Work work = work_of(shared);
    const float* q = a.qkv + std::size_t{block().x} * spec.width() + head * spec.head_dim;
    for (std::uint32_t d = thread(); d < spec.head_dim; d += kThreads) work.q[d] = q[d];
    sync_block();

    const std::uint32_t lowest = spec.window == 0 || row.position < spec.window ? 0 : row.position - spec.window + 1;
    Merged merged;
    for (std::uint32_t span = lowest / kThreads; span <= row.position / kThreads; ++span) {
      const bool seen = look(a, row, head, span * kThreads + thread(), lowest, work);
      weigh(a, head, seen, work, merged);
    }
    float* out = a.out + (std::size_t{block().x} * spec.num_heads + head) * spec.head_dim;
    const float inverse = quotient(1.0f, merged.sum);
    for (unsigned i = 0; i < kDimsOfThread; ++i) {
      const std::uint32_t d = i * kThreads + thread();
      if (d < spec.head_dim) out[d] = merged.o[i] * inverse;
    }
  }

 private:
  static constexpr unsigned kDimsOfThread = kMostDims / kThreads;
  static constexpr std::uint32_t kUnseen = ~0u;

  struct Work {
    float* z;              // [256] scores, then exponentials
    std::uint32_t* slots;  // [256] where each position's K and V are; kUnseen
    float* lanes;          // [16]
    float* q;              // [D]
  };
  struct Merged {
    float max = 0.0f;
    float sum = 0.0f;  // 0: no span yet (afterwards it is at least 1, or NaN)
    float o[kDimsOfThread] = {};
  };

  QUIRE_DEVICE static Work work_of(std::byte* shared) {
    Work work;
    work.z = reinterpret_cast<float*>(shared);
    work.slots = reinterpret_cast<std::uint32_t*>(work.z + kThreads);
    work.lanes = reinterpret_cast<float*>(work.slots + kThreads);
    work.q = work.lanes + kSumLanes;
    return work;
  }

  // Whether the row sees the position at all, and its score.
  QUIRE_DEVICE static bool look(const Args& a, const RowOfBatch& row, std::uint32_t head, std::uint32_t position,
                                std::uint32_t lowest, Work& work) {
    const AttentionView& spec = a.spec;
    const std::uint32_t slot = slot_of(a, row, position, lowest);
    work.slots[thread()] = slot;
    if (slot == kUnseen) return false;
    const std::uint32_t kv_head = head / (spec.num_heads / spec.num_kv_heads);
    const std::size_t k = a.kv.layout.k_at(spec.layer, kv_head, slot, 0);
    float z = 0.0f;
    for (std::uint32_t d = 0; d < spec.head_dim; ++d) {
      z = fma(work.q[d], kv_at(a.kv, k + std::size_t{d} * KvLayout::kGroup), z);
    }
    work.z[thread()] = z * spec.scale;
    return true;
  }

  QUIRE_DEVICE static std::uint32_t slot_of(const Args& a, const RowOfBatch& row, std::uint32_t position,
                                            std::uint32_t lowest) {
    if (position < lowest || position > row.position) return kUnseen;
    const std::uint32_t span = position / kThreads;
    if (span < row.num_kept) {
      const std::uint32_t kept = a.kept_groups[row.first_kept + span];
      if ((kept >> position % kThreads / KvLayout::kGroup & 1u) == 0) return kUnseen;
    }
    // A node's ancestors stand in the order of their numbers, each behind the root by its own.
    std::uint32_t stands_at = position;
    if (row.ancestors != 0 && position > row.root_position) {
      std::uint64_t left = row.ancestors;
      for (std::uint32_t i = row.root_position + 1; i < position; ++i) left &= left - 1;
      stands_at = row.root_position + 1 + lowest_bit(left);
    }
    const std::uint32_t block = a.block_tables[row.first_table + stands_at / a.kv.layout.block_tokens];
    return block * a.kv.layout.block_tokens + stands_at % a.kv.layout.block_tokens;
  }
  QUIRE_DEVICE static std::uint32_t lowest_bit(std::uint64_t bits) {
    std::uint32_t bit = 0;
    while ((bits >> bit & 1u) == 0) ++bit;
    return bit;
  }

  // One span: its maximum, exponentials, their sum and the weighted values, merged into what the spans before came to.
  QUIRE_DEVICE static void weigh(const Args& a, std::uint32_t head, bool seen, Work& work, Merged& merged) {
    const AttentionView& spec = a.spec;
    const float z = seen ? work.z[thread()] : 0.0f;
    if (!any_of_block(seen)) return;
    const float max = highest(seen, z, work);
    work.z[thread()] = seen ? sample::exp_f32(z - max) : 0.0f;
    sync_block();
    const float sum = sum16(work);

    const std::uint32_t kv_head = head / (spec.num_heads / spec.num_kv_heads);
    const bool is_first = merged.sum == 0.0f;
    const float higher = is_first || max > merged.max ? max : merged.max;
    const float before = is_first ? 0.0f : sample::exp_f32(merged.max - higher);
    const float now = sample::exp_f32(max - higher);
    merged.max = higher;
    merged.sum = is_first ? sum : fma(merged.sum, before, sum * now);
    for (unsigned i = 0; i < kDimsOfThread; ++i) {
      const std::uint32_t d = i * kThreads + thread();
      if (d >= spec.head_dim) break;
      float o = 0.0f;
      for (unsigned j = 0; j < kThreads; ++j) {
        if (work.slots[j] == kUnseen) continue;
        o = fma(work.z[j], kv_at(a.kv, a.kv.layout.v_at(spec.layer, kv_head, work.slots[j], d)), o);
      }
      merged.o[i] = is_first ? o : fma(merged.o[i], before, o * now);
    }
    sync_block();
  }

  // Maxima have no order but where something is NaN, and then all of it comes to NaN.
  QUIRE_DEVICE static float highest(bool seen, float z, Work& work) {
    float best = seen ? z : -kInfinity();
    for (unsigned lane = kWarp / 2; lane > 0; lane /= 2) {
      const float other = shuffle_xor(best, lane);
      best = best > other || best != best ? best : other;
    }
    if (thread() % kWarp == 0) work.lanes[thread() / kWarp] = best;
    sync_block();
    best = work.lanes[0];
    for (unsigned warp = 1; warp < kThreads / kWarp; ++warp) {
      const float other = work.lanes[warp];
      best = best > other || best != best ? best : other;
    }
    sync_block();
    return best;
  }
  QUIRE_DEVICE static float kInfinity() { return f32_of_bits(0x7f800000u); }

  QUIRE_DEVICE static float sum16(Work& work) {
    if (thread() < kWarp) {
      float lane = 0.0f;
      for (unsigned j = thread() % kSumLanes; j < kThreads; j += kSumLanes) {
        if (work.slots[j] != kUnseen) lane = lane + work.z[j];
      }
      const float sum = sum_of_lanes(lane);
      if (thread() == 0) work.lanes[0] = sum;
    }
    sync_block();
    const float sum = work.lanes[0];
    sync_block();
    return sum;
  }
};

}  // namespace quire::gpu
