// What a unit's columns do with a span, whoever multiplies: the weights of its scores, the merge with the spans before it, what is not
// finite, and what goes out. The order of every sum is that of attention_tiles.h.
// Shape   a call is a TileCall; a warp w of the first eight has dimensions 16 w .. 16 w + 15 of each 128, its lanes what matrix.h says.
// Thread  of the first eight warps all; take_queries(): so many threads as it is told.
// Source  ours; online softmax (Milakov & Gimelshein 2018).
#pragma once

#include "core/sample/math.h"
#include "gpu/kernels/rows.h"
#include "gpu/kernels/tile_columns.h"

namespace quire::gpu {

inline constexpr unsigned kTileWarps = 8;

enum SpanStep : std::uint32_t { kNothingSeen, kFirstSpan, kMergeSpan };

template <unsigned kThreads, typename Call>
QUIRE_DEVICE void take_queries(const Call& call) {
  const AttentionView& spec = call.a.spec;
  const std::uint32_t width = call.a.kv.layout.width();
  for (std::uint32_t i = thread(); i < Call::kColumns * width; i += kThreads) {
    const std::uint32_t column = i / width;
    const std::uint32_t d = i % width;
    float x = 0.0f;
    if (column < call.unit.num_queries && d < spec.head_dim) {
      const auto query = call.query_of(column);
      x = call.a.qkv[std::size_t{query.row} * spec.width() + query.head * spec.head_dim + d];
    }
    call.work.query(column, d) = bf16_of_f32(x);
  }
}

// A thread a column.
template <typename Call>
QUIRE_DEVICE void begin_columns(const Call& call) {
  const unsigned column = thread();
  if (column >= Call::kColumns) return;
  const bool is_there = column < call.unit.num_queries;
  const std::uint32_t position = is_there ? call.a.batch.rows[call.query_of(column).row].position : 0;
  call.work.position[column] = position;
  call.work.lowest[column] = is_there ? lowest_seen(position, call.a.spec.window) : ~0u;
  call.work.max[column] = 0.0f;
  call.work.sum[column] = 0.0f;
}

template <typename Work>
QUIRE_DEVICE void take_span(Work& work, unsigned column, bool any, float max, float sum) {
  if (!any) {
    work.step[column] = kNothingSeen;
  } else if (work.sum[column] == 0.0f) {
    work.step[column] = kFirstSpan;
    work.max[column] = max;
    work.sum[column] = sum;
  } else {
    const float higher = max > work.max[column] ? max : work.max[column];
    const float before = sample::exp_f32(work.max[column] - higher);
    const float now = sample::exp_f32(max - higher);
    work.step[column] = kMergeSpan;
    work.before[column] = before;
    work.now[column] = now;
    work.max[column] = higher;
    work.sum[column] = fma(work.sum[column], before, sum * now);
  }
}

// Half a warp a column: its maximum, weights and sum, and how the span is merged. Scores of a pair of columns have been read by all of
// the warp when their weights are written, which may lie in the same places.
template <typename Call>
QUIRE_DEVICE void soften(const Call& call) {
  constexpr unsigned kOfWarp = Call::kColumns < 2 * kTileWarps ? 2 : Call::kColumns / kTileWarps;
  auto& work = call.work;
  const unsigned lane = thread() % kSumLanes;
  QUIRE_ROLLED for (unsigned i = 0; i < kOfWarp; i += 2) {
    const unsigned column = thread() / kWarp * kOfWarp + i + thread() % kWarp / kSumLanes;
    if (column >= Call::kColumns) return;
    float z[Call::kGroups];
    float max = -kv_infinity();
    bool any = false;  // does the column see
    QUIRE_UNROLLED for (unsigned group = 0; group < Call::kGroups; ++group) {
      z[group] = work.score(column, group * kSumLanes + lane);
      if (call.sees(column, group, lane)) max = max > z[group] || max != max ? max : z[group];
      any = any || ((call.groups >> group & 1u) != 0 && work.position[column] >= call.start(group) &&
                    work.lowest[column] < call.start(group) + KvLayout::kGroup &&
                    work.lowest[column] <= work.position[column]);
    }
    for (unsigned half = kSumLanes / 2; half > 0; half /= 2) {
      const float other = shuffle_xor(max, half);
      max = max > other || max != max ? max : other;
    }
    float sum = 0.0f;
    QUIRE_UNROLLED for (unsigned group = 0; group < Call::kGroups; ++group) {
      const unsigned j = group * kSumLanes + lane;
      float weight = 0.0f;
      if (call.sees(column, group, lane)) {
        weight = sample::exp_f32(z[group] - max);
        sum = sum + weight;
        if constexpr (Call::kType == backend::KvType::kInt8) weight = weight * work.v_scales[j];
      }
      work.weight(column, j) = bf16_of_f32(weight);
    }
    sum = sum_of_lanes(sum);
    if (lane == 0) take_span(work, column, any, max, sum);
  }
}

// A lane's sums of the span, to those of the spans before it.
template <typename Call>
QUIRE_DEVICE void merge_span(const Call& call, const Product (&sums)[Call::kColumnTiles],
                             Product (&merged)[Call::kColumnTiles]) {
  const unsigned lane = thread() % kWarp;
  QUIRE_UNROLLED for (unsigned t = 0; t < Call::kColumnTiles; ++t) {
    QUIRE_UNROLLED for (unsigned c = 0; c < 4; ++c) {
      const unsigned column = t * kTileRows + lane % 4 * 2 + c % 2;
      float& o = merged[t].c[c];
      if (call.work.step[column] == kFirstSpan) o = sums[t].c[c];
      if (call.work.step[column] == kMergeSpan) {
        o = fma(o, call.work.before[column], sums[t].c[c] * call.work.now[column]);
      }
    }
  }
}

// What is not finite, to the columns that see it, but for those of which leaves_out(column) says so. Of the four lanes that hold a lane's
// dimensions shown(away, word) is what the one so far away holds.
template <typename Call, typename Shown, typename LeavesOut>
QUIRE_DEVICE void add_faults(const Call& call, unsigned group, Product (&sums)[Call::kColumnTiles], const Shown& shown,
                             const LeavesOut& leaves_out) {
  const unsigned lane = thread() % kWarp;
  QUIRE_ROLLED for (unsigned away = 0; away < 4; ++away) {
    QUIRE_UNROLLED for (unsigned word = 0; word < 4; ++word) {
      const std::uint32_t pair = shown(away, word);
      QUIRE_UNROLLED for (unsigned half = 0; half < 2; ++half) {
        const std::uint32_t bits = pair >> 16 * half & 0xffffu;
        const unsigned in_group = (lane % 4 ^ away) * 2 + half + word / 2 * 8;
        if (!is_fault(bits)) continue;
        QUIRE_UNROLLED for (unsigned t = 0; t < Call::kColumnTiles; ++t) {
          QUIRE_UNROLLED for (unsigned c = 0; c < 2; ++c) {
            const unsigned column = t * kTileRows + lane % 4 * 2 + c;
            if (!call.sees(column, group, in_group) || leaves_out(column)) continue;
            const float weight = f32_of_bf16(call.work.weight(column, group * KvLayout::kGroup + in_group));
            float& o = sums[t].c[word % 2 * 2 + c];
            o = fma(f32_of_bits(bits << 16), weight, o);
          }
        }
      }
    }
  }
}

template <typename Call, unsigned kDimTiles>
QUIRE_DEVICE void finish_columns(const Call& call, const Product (&merged)[kDimTiles][Call::kColumnTiles]) {
  const AttendTilesArgs& a = call.a;
  const unsigned lane = thread() % kWarp;
  QUIRE_UNROLLED for (unsigned t = 0; t < Call::kColumnTiles; ++t) {
    QUIRE_UNROLLED for (unsigned c = 0; c < 2; ++c) {
      const unsigned column = t * kTileRows + lane % 4 * 2 + c;
      if (column >= call.unit.num_queries) continue;
      const auto query = call.query_of(column);
      const RowParts& parts = a.row_parts[query.row];
      if (parts.num_spans != 0 && !parts.has(call.unit.first_span)) continue;
      const bool is_part = parts.num_spans != 0;
      const float inverse = is_part ? 1.0f : quotient(1.0f, call.work.sum[column]);
      const std::size_t at = is_part ? parts.part(call.unit.first_span, query.head, a.spec.num_heads)
                                     : std::size_t{query.row} * a.spec.num_heads + query.head;
      float* out = (is_part ? a.parts.values : a.out) + at * a.spec.head_dim;
      QUIRE_UNROLLED for (unsigned i = 0; i < kDimTiles; ++i) {
        QUIRE_UNROLLED for (unsigned half = 0; half < 2; ++half) {
          const std::uint32_t d = (i * kTileWarps + thread() / kWarp) * kTileOutputs + lane / 4 + half * 8;
          const float o = merged[i][t].c[half * 2 + c];
          if (d < a.spec.head_dim) out[d] = is_part ? o : o * inverse;
        }
      }
      float* max_and_sum = is_part ? a.parts.max_and_sum : a.max_and_sum;
      if (max_and_sum == nullptr || thread() / kWarp != 0 || lane / 4 != 0) continue;
      max_and_sum[2 * at] = call.work.max[column];
      max_and_sum[2 * at + 1] = call.work.sum[column];
    }
  }
}

}  // namespace quire::gpu
