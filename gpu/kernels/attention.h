// Attention over the paged cache without tensor cores, by core/backend/step_ops.h, bit for bit as on the CPU: for
// f32 caches, which the tensor cores do not take, and for heads of more dimensions than attention_tiles.h has room for.
// Shape   qkv [T, (H + 2 G) D], out [T, H D].
// Launch  one thread block per row and head; a thread per position of a span.
// Source  PagedAttention (Kwon et al. 2023); online softmax (Milakov & Gimelshein 2018); fixed spans are ours.
#pragma once

#include "core/base/kv_constants.h"
#include "core/sample/math.h"
#include "gpu/device/softmax.h"
#include "gpu/kernels/batch_rows.h"
#include "gpu/kernels/rows.h"

namespace quire::gpu {

// grid.x: rows, grid.y: query heads.
struct Attend {
  struct Args {
    AttentionView spec;
    BatchView batch;
    const float* qkv = nullptr;
    KvView kv;
    float* out = nullptr;
    std::uint64_t* accumulated_scores = nullptr;
  };
  static constexpr unsigned kThreads = kSpanTokens;  // one position each
  static constexpr unsigned kMostDims = 2 * kThreads;
  static constexpr unsigned kMinBlocks = 4;  // left to itself, the compiler spills
  static constexpr std::size_t kSharedBytes =
      kThreads * (sizeof(float) + sizeof(std::uint32_t)) + kSumLanes * sizeof(float) + kMostDims * sizeof(float);

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const AttentionView& spec = a.spec;
    const RowOfBatch& row = a.batch.rows[block().x];
    if (row.slot == RowOfBatch::kNobody) return;
    const std::uint32_t head = block().y;
    Work work = work_of(shared);
    const float* q = a.qkv + std::size_t{block().x} * spec.width() + head * spec.head_dim;
    for (std::uint32_t d = thread(); d < spec.head_dim; d += kThreads) work.q[d] = q[d];
    sync_block();

    Merged merged;
    const std::uint32_t first_span = lowest_seen(row.position, spec.window) / kThreads;
    for (std::uint32_t span = first_span; span <= row.position / kThreads; ++span) {
      const bool seen = look(a, row, head, span * kThreads + thread(), work);
      weigh(a, row, head, span, seen, work, merged);
    }
    if (spec.sinks != nullptr) {
      const WithSink all =
          with_sink(merged.max, merged.sum, spec.sinks[head], [](float x) { return sample::exp_f32(x); });
      merged.max = all.max;
      merged.sum = all.sum;
      QUIRE_UNROLLED for (unsigned i = 0; i < kDimsOfThread; ++i) merged.o[i] = fma(merged.o[i], all.before, 0.0f);
    }
    float* out = a.out + (std::size_t{block().x} * spec.num_heads + head) * spec.head_dim;
    const float inverse = quotient(1.0f, merged.sum);
    QUIRE_UNROLLED
    for (unsigned i = 0; i < kDimsOfThread; ++i) {
      const std::uint32_t d = i * kThreads + thread();
      if (d < spec.head_dim) out[d] = merged.o[i] * inverse;
    }
    if (row.num_accumulated_scores == 0) return;
    for (std::uint32_t span = first_span; span <= row.position / kThreads;
         ++span) {  // second pass: max and sum are known
      const std::uint32_t position = span * kThreads + thread();
      if (!look(a, row, head, position, work)) continue;
      const float weight = sample::exp_f32(work.z[thread()] - merged.max);
      add_whole(a.accumulated_scores + row.first_accumulated_score + position / KvLayout::kGroup,
                accumulated_score_of(weight, inverse));
    }
  }

 private:
  static constexpr unsigned kDimsOfThread = kMostDims / kThreads;
  struct Work {
    float* z;              // [256] scores, then exponentials
    std::uint32_t* slots;  // [256] slot of each position's K and V, or kUnseen
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

  // Computes the position's score. False: the row does not see it.
  QUIRE_DEVICE static bool look(const Args& a, const RowOfBatch& row, std::uint32_t head, std::uint32_t position,
                                Work& work) {
    const AttentionView& spec = a.spec;
    const std::uint32_t slot = seen_slot(a, row, position);
    work.slots[thread()] = slot;
    if (slot == kUnseen) return false;
    const std::uint32_t kv_head = head / spec.heads_of_group();
    float z = 0.0f;
    if (in_own_group(a.kv.layout, row, position)) {
      const float* k = own_row(spec, a.kv, a.qkv, row, kv_head, position).k;
      for (std::uint32_t d = 0; d < spec.head_dim; ++d) z = fma(work.q[d], k[d], z);
    } else {
      const std::byte* group = a.kv.group(kv_head, slot);
      for (std::uint32_t d = 0; d < spec.head_dim; ++d) z = fma(work.q[d], stored_k(a.kv.layout, group, slot, d), z);
    }
    z = z * spec.scale;
    work.z[thread()] = spec.finishes_scores() ? spec.finished(z, head, row.position, position) : z;
    return true;
  }

  QUIRE_DEVICE static std::uint32_t seen_slot(const Args& a, const RowOfBatch& row, std::uint32_t position) {
    if (position < lowest_seen(row.position, a.spec.window) || position > row.position) return kUnseen;
    const std::uint32_t kept = groups_kept(a.batch, row, position / kThreads);
    if ((kept >> position % kThreads / KvLayout::kGroup & 1u) == 0) return kUnseen;
    return slot_of(a.batch, a.kv.layout, row, position);
  }

  // Reduces one span (maximum, exponentials, their sum, the weighted values) and merges it into the earlier ones.
  QUIRE_DEVICE static void weigh(const Args& a, const RowOfBatch& row, std::uint32_t head, std::uint32_t span,
                                 bool seen, Work& work, Merged& merged) {
    const AttentionView& spec = a.spec;
    const float z = seen ? work.z[thread()] : 0.0f;
    if (!any_of_block(seen)) return;
    const float max = highest(seen, z, work);
    work.z[thread()] = seen ? sample::exp_f32(z - max) : 0.0f;
    sync_block();
    const float sum = sum16(work);

    const std::uint32_t kv_head = head / spec.heads_of_group();
    const bool is_first = merged.sum == 0.0f;
    const float higher = is_first || max > merged.max ? max : merged.max;
    const float before = is_first ? 0.0f : sample::exp_f32(merged.max - higher);
    const float now = sample::exp_f32(max - higher);
    merged.max = higher;
    merged.sum = is_first ? sum : fma(merged.sum, before, sum * now);
    QUIRE_UNROLLED
    for (unsigned i = 0; i < kDimsOfThread; ++i) {
      const std::uint32_t d = i * kThreads + thread();
      if (d >= spec.head_dim) continue;
      float o = 0.0f;
      for (unsigned j = 0; j < kThreads; ++j) {
        if (work.slots[j] == kUnseen) continue;
        o = fma(work.z[j], v_at(a, row, kv_head, span * kThreads + j, work.slots[j], d), o);
      }
      merged.o[i] = is_first ? o : fma(merged.o[i], before, o * now);
    }
    sync_block();
  }

  QUIRE_DEVICE static float v_at(const Args& a, const RowOfBatch& row, std::uint32_t kv_head, std::uint32_t position,
                                 std::uint32_t slot, std::uint32_t d) {
    if (in_own_group(a.kv.layout, row, position)) return own_row(a.spec, a.kv, a.qkv, row, kv_head, position).v[d];
    return stored_v(a.kv.layout, a.kv.group(kv_head, slot), slot, d);
  }

  // Maxima have no order unless something is NaN, and then the result is NaN.
  QUIRE_DEVICE static float highest(bool seen, float z, Work& work) {
    float best = seen ? z : -kv_infinity();
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
