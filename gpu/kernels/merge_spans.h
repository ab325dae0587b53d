// Merge of split attention: out[t, h] of rows whose spans had units of their own. Parts are merged in ascending order,
// as core/backend/step_ops.h says:
//   m = max(M, m_s); a = exp_near(M - m), b = exp_near(m_s - m);  L = fma(L, a, l_s*b); O = fma(O, a, o_s*b); M = m;
//   out = O * (1/L)
// A head's sink is merged last. The maximum before each span has no order, and all threads find them at once, so that
// only two chains of fma are left. Many parts are loaded before the first is used: a part's numbers come from memory,
// and a chain that waits for each load takes some 400 cycles per span. Parts that saw nothing are loaded, too, and not
// used.
// Shape   parts as in attention_units.h; out [T, H D].
// Launch  one thread block per row and head; a thread has two dimensions.
// Source  online softmax (Milakov & Gimelshein 2018); Flash-Decoding (Dao et al. 2023).
#pragma once

#include "gpu/device/simt.h"
#include "gpu/device/softmax.h"
#include "gpu/kernels/attention_units.h"
#include "gpu/kernels/batch_rows.h"

namespace quire::gpu {

// grid.x: rows in parts, grid.y: query heads.
struct MergeSpans {
  struct Args {
    const std::uint32_t* rows = nullptr;  // kNobody: padding of a grid
    const RowParts* row_parts = nullptr;  // [T]
    PartsView parts;
    std::uint32_t num_heads = 0;
    std::uint32_t head_dim = 0;
    const float* sinks = nullptr;  // AttentionView::sinks
    float* out = nullptr;
  };
  static constexpr unsigned kThreads = 128;
  static constexpr std::uint32_t kMostDims = 256;

 private:
  static constexpr unsigned kDimsOfThread = kMostDims / kThreads;
  static constexpr std::uint32_t kAtOnce = 256;  // spans at a time
  static constexpr unsigned kAhead = 16;
  static constexpr unsigned kFew = 4;

  struct Work {
    float max[kAtOnce];
    float sum[kAtOnce];
    float before[kAtOnce];
    float now[kAtOnce];
  };
  struct Merged {
    float max = 0.0f;
    float sum = 0.0f;  // 0: no span yet (afterwards it is at least 1, or NaN)
    float o[kDimsOfThread] = {};

    QUIRE_DEVICE void see(float part_max, float part_sum) {
      if (part_sum == 0.0f) return;
      max = sum == 0.0f || part_max > max ? part_max : max;
      sum = 1.0f;
    }
  };

 public:
  static constexpr std::size_t kSharedBytes = sizeof(Work);

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    Work& work = *reinterpret_cast<Work*>(shared);
    const std::uint32_t row = a.rows[block().x];
    if (row == RowOfBatch::kNobody) return;
    const RowParts& parts = a.row_parts[row];
    Merged merged;
    for (std::uint32_t first = 0; first < parts.num_spans; first += kAtOnce) {
      const std::uint32_t count = parts.num_spans - first < kAtOnce ? parts.num_spans - first : kAtOnce;
      for (std::uint32_t i = thread(); i < count; i += kThreads) {
        const float* of_part =
            a.parts.max_and_sum + 2 * parts.part(parts.first_span + first + i, block().y, a.num_heads);
        work.max[i] = of_part[0];
        work.sum[i] = of_part[1];
      }
      sync_block();
      for (std::uint32_t i = thread(); i < count; i += kThreads) find_factors(work, i, merged);
      sync_block();
      merge(a, work, parts, parts.first_span + first, count, merged);
      sync_block();
    }
    if (a.sinks != nullptr) {
      const WithSink all = with_sink(merged.max, merged.sum, a.sinks[block().y], [](float x) { return exp_near(x); });
      merged.sum = all.sum;
      QUIRE_UNROLLED for (unsigned k = 0; k < kDimsOfThread; ++k) merged.o[k] = fma(merged.o[k], all.before, 0.0f);
    }
    const float inverse = quotient(1.0f, merged.sum);
    float* out = a.out + (std::size_t{row} * a.num_heads + block().y) * a.head_dim;
    for (unsigned k = 0; k < kDimsOfThread; ++k) {
      const std::uint32_t d = k * kThreads + thread();
      if (d < a.head_dim) out[d] = merged.o[k] * inverse;
    }
  }

 private:
  QUIRE_DEVICE static void find_factors(Work& work, std::uint32_t part, Merged seen) {
    QUIRE_ROLLED for (std::uint32_t first = 0; first < part; first += kFew) {
      float max[kFew];
      float sum[kFew];
      QUIRE_UNROLLED for (unsigned i = 0; i < kFew; ++i) {
        max[i] = first + i < part ? work.max[first + i] : 0.0f;
        sum[i] = first + i < part ? work.sum[first + i] : 0.0f;  // 0: saw nothing
      }
      QUIRE_UNROLLED for (unsigned i = 0; i < kFew; ++i) seen.see(max[i], sum[i]);
    }
    const float earlier = seen.max;
    seen.see(work.max[part], work.sum[part]);
    work.before[part] = exp_near(earlier - seen.max);
    work.now[part] = exp_near(work.max[part] - seen.max);
  }

  QUIRE_DEVICE static void merge(const Args& a, const Work& work, const RowParts& parts, std::uint32_t first_span,
                                 std::uint32_t count, Merged& merged) {
    const float* values = a.parts.values + parts.part(first_span, block().y, a.num_heads) * a.head_dim;
    const std::size_t to_next = std::size_t{a.num_heads} * a.head_dim;
    std::uint32_t first = 0;
    QUIRE_ROLLED for (; first + kAhead <= count; first += kAhead, values += kAhead * to_next) {
      merge_some<kAhead>(a, work, first, kAhead, values, to_next, merged);
    }
    QUIRE_ROLLED for (; first < count; first += kFew, values += kFew * to_next) {
      merge_some<kFew>(a, work, first, count - first, values, to_next, merged);
    }
  }
  // left: number of parts that are left, which may be more than kMost.
  template <unsigned kMost>
  QUIRE_DEVICE static void merge_some(const Args& a, const Work& work, std::uint32_t first, std::uint32_t left,
                                      const float* values, std::size_t to_next, Merged& merged) {
    float ahead[kMost][kDimsOfThread];
    QUIRE_UNROLLED for (unsigned i = 0; i < kMost; ++i) {
      QUIRE_UNROLLED for (unsigned k = 0; k < kDimsOfThread; ++k) {
        const std::uint32_t d = k * kThreads + thread();
        ahead[i][k] = i < left && d < a.head_dim ? values[i * to_next + d] : 0.0f;
      }
    }
    QUIRE_UNROLLED for (unsigned i = 0; i < kMost; ++i) {
      if (i < left) add(work, first + i, ahead[i], merged);
    }
  }
  QUIRE_DEVICE static void add(const Work& work, std::uint32_t i, const float (&values)[kDimsOfThread],
                               Merged& merged) {
    if (work.sum[i] == 0.0f) return;
    const bool is_first = merged.sum == 0.0f;
    merged.max = is_first || work.max[i] > merged.max ? work.max[i] : merged.max;
    merged.sum = is_first ? work.sum[i] : fma(merged.sum, work.before[i], work.sum[i] * work.now[i]);
    QUIRE_UNROLLED for (unsigned k = 0; k < kDimsOfThread; ++k) {
      merged.o[k] = is_first ? values[k] : fma(merged.o[k], work.before[i], values[k] * work.now[i]);
    }
  }
};

}  // namespace quire::gpu
