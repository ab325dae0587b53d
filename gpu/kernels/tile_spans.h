// Work of a unit's columns on a span, apart from the products: the softmax weights of its scores, the merge with the
// spans before, values that are not finite, and the output. The order of every sum is that of attention_tiles.h.
// Shape   a call is a TileCall. Warp w has dimensions 16 w .. 16 w + 15 of each 128, its lanes as in matrix.h.
// Thread  called by all threads of the first eight warps.
// Source  ours; online softmax (Milakov & Gimelshein 2018).
#pragma once

#include "gpu/kernels/rows.h"
#include "gpu/kernels/tile_columns.h"

namespace quire::gpu {

inline constexpr unsigned kTileWarps = 8;

enum SpanStep : std::uint32_t { kNothingSeen, kFirstSpan, kMergeSpan };

// Called by the first eight warps, each of which takes columns in turn: row and head, and q in bf16.
template <typename Call>
QUIRE_DEVICE void take_queries(const Call& call) {
  const AttentionView& spec = call.a.spec;
  const std::uint32_t width = call.a.kv.layout.width();
  auto& work = call.work;
  const unsigned lane = thread() % kWarp;
  QUIRE_ROLLED for (unsigned column = thread() / kWarp; column < Call::kColumns; column += kTileWarps) {
    const bool is_there = column < call.unit.num_queries;
    const auto query = is_there ? call.query_of(column) : typename Call::Query{call.unit.first_row, 0};
    const float* q = call.a.qkv + std::size_t{query.row} * spec.width() + query.head * spec.head_dim;
    QUIRE_ROLLED for (std::uint32_t d = lane * 2; d < width; d += 2 * kWarp) {
      const float first = is_there && d < spec.head_dim ? q[d] : 0.0f;
      const float second = is_there && d + 1 < spec.head_dim ? q[d + 1] : 0.0f;
      work.query_pair(column, d) = bf16_pair(first, second);
    }
    if (lane != 0) continue;
    const std::uint32_t position = is_there ? call.a.batch.rows[query.row].position : 0;
    work.row[column] = query.row;
    work.head[column] = query.head;
    work.position[column] = position;
    work.lowest[column] = is_there ? lowest_seen(position, spec.window) : ~0u;
    work.max[column] = 0.0f;
    work.sum[column] = 0.0f;
    work.step[column] = kNothingSeen;
  }
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
    const float before = exp_near(work.max[column] - higher);
    const float now = exp_near(max - higher);
    work.step[column] = kMergeSpan;
    work.before[column] = before;
    work.now[column] = now;
    work.max[column] = higher;
    work.sum[column] = fma(work.sum[column], before, sum * now);
  }
}

// A warp's part of a span and column: lane l has positions 2 i and 2 i + 1, i = l mod 8, of groups 4 q to 4 q + 3, q =
// l div 8.
template <typename Call>
struct Softening {
  static constexpr unsigned kGroupsOfLane = 4;
  static constexpr unsigned kLanes = kSumLanes / 2;  // of a group

  const Call& call;
  const unsigned column;
  const unsigned lane = thread() % kWarp;
  const unsigned first_group = lane / kLanes * kGroupsOfLane;
  const unsigned in_group = lane % kLanes * 2;

  // Computes the column's maximum, weights and sum, and how the span is merged. kSeesAll: the column sees the whole
  // span.
  template <bool kSeesAll>
  QUIRE_DEVICE void run() const {
    auto& work = call.work;
    FloatPair z[kGroupsOfLane];
    bool sees[kGroupsOfLane][2];
    float max = -kv_infinity();
    bool any = kSeesAll;
    QUIRE_UNROLLED for (unsigned g = 0; g < kGroupsOfLane; ++g) {
      z[g] = work.score_pair(column, place(g));
      QUIRE_UNROLLED for (unsigned b = 0; b < 2; ++b) {
        sees[g][b] = kSeesAll || call.sees(column, first_group + g, in_group + b);
        any = any || sees[g][b];
      }
      if (sees[g][0]) max = highest(max, z[g].first);
      if (sees[g][1]) max = highest(max, z[g].second);
    }
    QUIRE_UNROLLED for (unsigned mask = kWarp / 2; mask > 0; mask /= 2) max = highest(max, shuffle_xor(max, mask));
    if constexpr (!kSeesAll) any = any_of_warp(any);
    QUIRE_UNROLLED for (unsigned g = 0; g < kGroupsOfLane; ++g) {
      z[g].first = sees[g][0] ? exp_near(z[g].first - max) : 0.0f;
      z[g].second = sees[g][1] ? exp_near(z[g].second - max) : 0.0f;
      put_weights(g, sees[g], z[g]);
    }
    const float sum = sum_of(z);
    if (lane + 1 == kWarp) take_span(work, column, any, max, sum);
  }

 private:
  QUIRE_DEVICE unsigned place(unsigned g) const { return (first_group + g) * KvLayout::kGroup + in_group; }

  QUIRE_DEVICE void put_weights(unsigned g, const bool (&seen)[2], FloatPair weights) const {
    if constexpr (Call::kType == backend::KvType::kInt8) {
      const auto scales = *reinterpret_cast<const FloatPair*>(&call.work.v_scales[place(g)]);
      if (seen[0]) weights.first = weights.first * scales.first;
      if (seen[1]) weights.second = weights.second * scales.second;
    }
    call.work.weight_pair(column, place(g)) = bf16_pair(weights.first, weights.second);
  }

  // sum16 of the column; the last lanes have it. Groups are added in order, so each eight lanes wait for those before
  // them.
  QUIRE_DEVICE static float sum_of(const FloatPair (&weights)[kGroupsOfLane]) {
    FloatPair sum;
    constexpr unsigned kFrom[] = {0, kLanes, 3 * kLanes, kLanes};  // xor distance to the lanes before
    QUIRE_UNROLLED for (unsigned quarter = 0; quarter < kWarp / kLanes; ++quarter) {
      if (quarter > 0) sum = {shuffle_xor(sum.first, kFrom[quarter]), shuffle_xor(sum.second, kFrom[quarter])};
      QUIRE_UNROLLED for (unsigned g = 0; g < kGroupsOfLane; ++g) {
        sum = {sum.first + weights[g].first, sum.second + weights[g].second};
      }
    }
    QUIRE_UNROLLED for (unsigned half = kLanes / 2; half > 0; half /= 2) {
      sum = {sum.first + shuffle_xor(sum.first, half), sum.second + shuffle_xor(sum.second, half)};
    }
    return sum.first + sum.second;
  }
};

// Called by the first eight warps. All lanes of the warp have read a column's scores before its weights are written,
// which may be in the same place. Empty columns have no weights.
template <typename Call>
QUIRE_DEVICE void soften(const Call& call) {
  constexpr unsigned kOfWarp = Call::kColumns / kTileWarps;
  QUIRE_ROLLED for (unsigned i = 0; i < kOfWarp; ++i) {
    const unsigned column = thread() / kWarp * kOfWarp + i;
    if (column >= call.unit.num_queries) return;
    const Softening<Call> softening{call, column};
    if (call.sees_all(column)) {
      softening.template run<true>();
    } else {
      softening.template run<false>();
    }
  }
}

// Merges a lane's sums of the span into those of the spans before.
template <typename Call>
QUIRE_DEVICE void merge_span(const Call& call, const Product (&sums)[Call::kColumnTiles],
                             Product (&merged)[Call::kColumnTiles]) {
  const auto& work = call.work;
  QUIRE_UNROLLED for (unsigned t = 0; t < Call::kColumnTiles; ++t) {
    QUIRE_UNROLLED for (unsigned c = 0; c < 2; ++c) {
      const unsigned column = t * kTileRows + thread() % 4 * 2 + c;
      const std::uint32_t step = work.step[column];
      if (step == kNothingSeen) continue;
      const float before = work.before[column];
      const float now = work.now[column];
      QUIRE_UNROLLED for (unsigned i = c; i < 4; i += 2) {
        float& o = merged[t].c[i];
        o = step == kFirstSpan ? sums[t].c[i] : fma(o, before, sums[t].c[i] * now);
      }
    }
  }
}

// Adds values that are not finite to the columns that see them, except columns for which leaves_out(column) is true.
// shown(away, word) is the word of the lane at that xor distance, of the four lanes that have a lane's dimensions.
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
            const std::uint32_t weights = call.work.weight_pair(column, group * KvLayout::kGroup + in_group - half);
            const float weight = f32_of_bits(weights >> 16 * half << 16);
            float& o = sums[t].c[word % 2 * 2 + c];
            o = fma(f32_of_bits(bits << 16), weight, o);
          }
        }
      }
    }
  }
}

// Output address and factor of each column. Null: another unit writes the row. Called by the first threads, one per
// column; a barrier stands between this and put_columns().
template <typename Call>
QUIRE_DEVICE void end_columns(const Call& call) {
  const AttendTilesArgs& a = call.a;
  const unsigned column = thread();
  if (column >= Call::kColumns) return;
  auto& work = call.work;
  work.out[column] = nullptr;
  if (column >= call.unit.num_queries) return;
  const RowParts& parts = a.row_parts[work.row[column]];
  const bool is_part = parts.num_spans != 0;
  if (is_part && !parts.has(call.unit.first_span)) return;
  const std::size_t at = is_part ? parts.part(call.unit.first_span, work.head[column], a.spec.num_heads)
                                 : std::size_t{work.row[column]} * a.spec.num_heads + work.head[column];
  work.out[column] = (is_part ? a.parts.values : a.out) + at * a.spec.head_dim;
  work.before[column] = 1.0f;
  if (!is_part && a.spec.sinks != nullptr) {
    const WithSink all = with_sink(work.max[column], work.sum[column], a.spec.sinks[work.head[column]],
                                   [](float x) { return exp_near(x); });
    work.max[column] = all.max;
    work.sum[column] = all.sum;
    work.before[column] = all.before;
  }
  work.now[column] = is_part ? 1.0f : quotient(1.0f, work.sum[column]);
  float* max_and_sum = is_part ? a.parts.max_and_sum : a.max_and_sum;
  if (max_and_sum == nullptr) return;
  max_and_sum[2 * at] = work.max[column];
  max_and_sum[2 * at + 1] = work.sum[column];
}

template <typename Call, unsigned kDimTiles>
QUIRE_DEVICE void put_columns(const Call& call, const Product (&merged)[kDimTiles][Call::kColumnTiles]) {
  const std::uint32_t head_dim = call.a.spec.head_dim;
  const unsigned lane = thread() % kWarp;
  // Without sinks the values stay as they are, the sign of a zero too.
  const float zero = call.a.spec.sinks == nullptr ? -0.0f : 0.0f;
  QUIRE_UNROLLED for (unsigned t = 0; t < Call::kColumnTiles; ++t) {
    QUIRE_UNROLLED for (unsigned c = 0; c < 2; ++c) {
      const unsigned column = t * kTileRows + lane % 4 * 2 + c;
      float* out = call.work.out[column];
      if (out == nullptr) continue;
      const float before = call.work.before[column];
      const float factor = call.work.now[column];
      QUIRE_UNROLLED for (unsigned i = 0; i < kDimTiles; ++i) {
        QUIRE_UNROLLED for (unsigned half = 0; half < 2; ++half) {
          const std::uint32_t d = (i * kTileWarps + thread() / kWarp) * kTileOutputs + lane / 4 + half * 8;
          if (d < head_dim) out[d] = fma(merged[i][t].c[half * 2 + c], before, zero) * factor;
        }
      }
    }
  }
}

}  // namespace quire::gpu
