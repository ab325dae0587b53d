// Attention over the paged cache by the tensor cores, for K and V in bf16, fp8, int8 and int4. Rows, heads and spans
// are those of core/backend/step_ops.h; q, and the softmax weights that V is multiplied by, are rounded to bf16:
//   s_j = K_j · q, tiles of 16 dimensions ascending in one chain;  z_j = s_j * scale (int8: (s_j * K's scale) * scale),
//   with a softcap c then c · tanh(z_j / c), with a slope then with its bias (step_ops.h)
//   m_s = max z_j;  e_j = exp_near(z_j - m_s) (softmax.h);  l_s = sum16 by j mod 16 of e_j
//   o_s = V · p, groups of 16 positions ascending in one chain, p_j = bf16(e_j) (int8: bf16(e_j * V's scale))
//   int4: K and V are code · step + lowest rounded to bf16; those of the row's own group are the values before storing,
//   rounded to bf16 too
// Spans are merged in ascending order as ops.h merges them: here if a unit goes over all of them, else in MergeSpans. A
// row has the same bits however rows are cut into units, whichever rows have the columns beside it, and whether its K
// and V were stored in this step or long ago:
//   - A position that a row does not see has weight 0 in its column. Values of V that some rows see and some do not are
//     left out of the product if they are not finite (0 times them is not 0), and then added to the columns that see
//     them.
//   - A node of a draft tree has units of its own from the root's span on: its ancestors are gathered at their
//     positions.
// Shape   qkv [T, (H + 2 G) D], out [T, H D]; D <= kMostDims. A unit has kColumns columns.
// Launch  grid.x: units, grid.y: kv heads; 256 threads.
// Order   within a tile of a chain: matrix.h. That a product with 0 leaves a sum unchanged was measured on an H200
//         (docs/gpu.md).
// Length  the kernel goes over a span in steps that share its memory: find, score, soften (tile_spans.h), weigh.
// Source  FlashAttention-2 (Dao 2023); query heads of a kv head as rows: Flash-Decoding (Dao et al. 2023); fixed spans
//         are ours.
#pragma once

#include "gpu/kernels/tile_spans.h"

namespace quire::gpu {

template <backend::KvType kType, unsigned kColumnTiles, std::uint32_t kMostHeadDims>
struct AttendTiles {
  using Args = AttendTilesArgs;
  static constexpr unsigned kThreads = 256;
  static constexpr unsigned kWarps = kThreads / kWarp;
  static constexpr std::uint32_t kMostDims = kMostHeadDims;

 private:
  using Work = TileWork<kColumnTiles, kMostDims>;
  using Call = TileCall<kType, kColumnTiles, Work>;
  static constexpr unsigned kColumns = Call::kColumns;
  static constexpr unsigned kSpan = Call::kSpan;
  static constexpr unsigned kGroups = Call::kGroups;
  static_assert(kSpan == kThreads && kWarps == kTileWarps);
  static constexpr unsigned kDimTiles = kMostDims / (kWarps * kTileOutputs);  // per warp
  static constexpr unsigned kAhead = kColumnTiles == 1 ? 8 : 4;  // tiles of K or V that a warp loads at once
  static constexpr std::uint32_t kOfAhead = (1u << kAhead) - 1;

 public:
  static constexpr std::size_t kSharedBytes = sizeof(Work);
  static_assert(kSharedBytes <= 48 * 1024, "what a block has without asking");

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const AttentionUnit& unit = a.units[block().x];
    if (unit.num_queries == 0) return;
    Call call{a, unit, a.batch.rows[unit.first_row], *reinterpret_cast<Work*>(shared), block().y};
    take_queries(call);
    Product merged[kDimTiles][kColumnTiles];
    QUIRE_ROLLED for (std::uint32_t span = unit.first_span; span <= unit.last_span; ++span) {
      call.go_to(span);
      if (call.groups == 0) continue;
      find(call);
      sync_block();
      score(call);
      sync_block();
      if (a.spec.finishes_scores()) {
        finish_scores(call);
        sync_block();
      }
      if (a.accumulated_scores != nullptr) {
        accumulate(call);
      } else {
        soften(call);
        sync_block();
        weigh(call, merged);
      }
      sync_block();
    }
    if (a.accumulated_scores != nullptr) return;
    sync_block();  // no barrier was passed yet if no span had any group
    end_columns(call);
    sync_block();
    put_columns(call, merged);
  }

 private:
  // One thread per group; or per position, if each position has something of its own.
  QUIRE_DEVICE static void find(const Call& call) {
    const bool by_position = kType == backend::KvType::kInt8 || call.gathered_groups() != 0;
    const unsigned j = by_position ? thread() : thread() * KvLayout::kGroup;
    if (j >= kSpan) return;
    const KvLayout& layout = call.a.kv.layout;
    if ((call.groups >> j / KvLayout::kGroup & 1u) == 0) {
      if (j % KvLayout::kGroup == 0) call.work.groups[j / KvLayout::kGroup] = call.a.kv.numbers;  // any valid address
      return;
    }
    const std::uint32_t slot = slot_of(call.a.batch, layout, call.row, call.start(0) + j);
    if (by_position) call.work.slots[j] = slot;
    if (slot == kUnseen || (kType != backend::KvType::kInt8 && j % KvLayout::kGroup != 0)) return;
    const std::byte* group = call.a.kv.group(call.kv_head, slot);
    if (j % KvLayout::kGroup == 0) call.work.groups[j / KvLayout::kGroup] = group;
    if constexpr (kType == backend::KvType::kInt8) {
      call.work.k_scales[j] = int8_scale_at(group + layout.k_scales_at(), slot);
      call.work.v_scales[j] = int8_scale_at(group + layout.v_scales_at(), slot);
    }
  }

  // One warp per group. Prefetches all of K and V of the warp's groups before it waits for the first of them.
  QUIRE_DEVICE static void score(const Call& call) {
    QUIRE_UNROLLED for (unsigned group = thread() / kWarp; group < kGroups; group += kWarps) {
      if (call.lies_in_one(group)) will_read(call.stored(group), 2 * call.code_bytes());
    }
    QUIRE_ROLLED for (unsigned group = thread() / kWarp; group < kGroups; group += kWarps) {
      if ((call.groups >> group & 1u) == 0) continue;
      if (call.is_stored(group)) {
        Product sums[kColumnTiles];
        if (call.lies_in_one(group)) {
          add_stored_scores(call, group, sums);
        } else {
          add_built_scores(call, group, /*own=*/false, sums);
        }
        put_scores(call, group, /*own=*/false, sums);
      }
      if (call.is_own(group)) {
        Product sums[kColumnTiles];
        add_built_scores(call, group, /*own=*/true, sums);
        put_scores(call, group, /*own=*/true, sums);
      }
    }
  }

  // One thread per position; the score of one that a column does not see does not matter.
  QUIRE_DEVICE static void finish_scores(const Call& call) {
    const std::uint32_t position = call.start(0) + thread();
    QUIRE_ROLLED for (unsigned column = 0; column < call.unit.num_queries; ++column) {
      float& z = call.work.score(column, thread());
      z = call.a.spec.finished(z, call.work.head[column], call.work.position[column], position);
    }
  }

  QUIRE_DEVICE static void add_stored_scores(const Call& call, unsigned group, Product (&sums)[kColumnTiles]) {
    const std::uint32_t num_tiles = call.a.kv.layout.width() / kTileInputs;
    std::uint32_t tile = 0;
    QUIRE_ROLLED for (; tile + kAhead <= num_tiles; tile += kAhead) add_tiles<kAhead>(call, group, tile, sums);
    QUIRE_ROLLED for (; tile + kAhead / 2 <= num_tiles; tile += kAhead / 2) {
      add_tiles<kAhead / 2>(call, group, tile, sums);
    }
    QUIRE_ROLLED for (; tile < num_tiles; ++tile) {
      add_one(stored_keys(call, group, tile, load_keys(call, group, tile)), tile % 2, sums,
              [&](unsigned t) -> const Words4& { return call.work.q[t][tile / 2][thread() % kWarp]; });
    }
  }
  // `first` is even.
  template <unsigned kTiles>
  QUIRE_DEVICE static void add_tiles(const Call& call, unsigned group, std::uint32_t first,
                                     Product (&sums)[kColumnTiles]) {
    const RawKvFragment<kType>* at = place_of_fragment<kType>(call.stored(group), first, thread() % kWarp);
    RawKvFragment<kType> raw[kTiles];
    QUIRE_UNROLLED for (unsigned i = 0; i < kTiles; ++i) raw[i] = load_fragment<kType>(at + i * kWarp);
    QUIRE_UNROLLED for (unsigned i = 0; i < kTiles; i += 2) {
      KvFragment k[2];
      QUIRE_UNROLLED for (unsigned n = 0; n < 2; ++n) k[n] = stored_keys(call, group, first + i + n, raw[i + n]);
      add_two(k, true, true, sums, [&](unsigned t) { return call.work.q[t][first / 2 + i / 2][thread() % kWarp]; });
    }
  }
  QUIRE_DEVICE static RawKvFragment<kType> load_keys(const Call& call, unsigned group, std::uint32_t tile) {
    return load_fragment<kType>(place_of_fragment<kType>(call.stored(group), tile, thread() % kWarp));
  }
  QUIRE_DEVICE static KvFragment stored_keys(const Call& call, unsigned group, std::uint32_t tile,
                                             const RawKvFragment<kType>& raw) {
    StepPairs steps{};
    if constexpr (kType == backend::KvType::kInt4) {
      const KvLayout& layout = call.a.kv.layout;
      steps =
          step_pairs(call.stored(group) + layout.k_scales_at(), layout.width(), tile * kTileInputs, thread() % kWarp);
    }
    return widened<kType>(raw, steps);
  }
  QUIRE_DEVICE static void add_built_scores(const Call& call, unsigned group, bool own, Product (&sums)[kColumnTiles]) {
    const std::uint32_t num_tiles = call.a.kv.layout.width() / kTileInputs;
    QUIRE_ROLLED for (std::uint32_t tile = 0; tile < num_tiles; ++tile) {
      add_one(call.built(group, tile, own, /*of_k=*/true), tile % 2, sums,
              [&](unsigned t) -> const Words4& { return call.work.q[t][tile / 2][thread() % kWarp]; });
    }
  }
  // sums[t] += left · 16 of the 32 inputs whose words right(t) has for a lane: the first 16, or the last (which = 1).
  template <typename Right>
  QUIRE_DEVICE static void add_one(const KvFragment& left, unsigned which, Product (&sums)[kColumnTiles],
                                   const Right& right) {
    QUIRE_UNROLLED for (unsigned t = 0; t < kColumnTiles; ++t) {
      const Words4& words = right(t);
      add_product(sums[t], left.words, {words.words[2 * which], words.words[2 * which + 1]});
    }
  }
  // sums[t] += left · right(t) for both halves of the inputs, or only those that are there.
  template <typename Right>
  QUIRE_DEVICE static void add_two(const KvFragment (&left)[2], bool first, bool second, Product (&sums)[kColumnTiles],
                                   const Right& right) {
    QUIRE_UNROLLED for (unsigned t = 0; t < kColumnTiles; ++t) {
      const Words4 words = right(t);
      if (first) add_product(sums[t], left[0].words, {words.words[0], words.words[1]});
      if (second) add_product(sums[t], left[1].words, {words.words[2], words.words[3]});
    }
  }
  QUIRE_DEVICE static void put_scores(const Call& call, unsigned group, bool own, const Product (&sums)[kColumnTiles]) {
    const unsigned lane = thread() % kWarp;
    const float scale = call.a.spec.scale;
    QUIRE_UNROLLED for (unsigned half = 0; half < 2; ++half) {
      const unsigned j = group * KvLayout::kGroup + lane / 4 + half * 8;
      const float k_scale = kType == backend::KvType::kInt8 ? call.work.k_scales[j] : 1.0f;
      QUIRE_UNROLLED for (unsigned t = 0; t < kColumnTiles; ++t) {
        QUIRE_UNROLLED for (unsigned c = 0; c < 2; ++c) {
          const unsigned column = t * kTileRows + lane % 4 * 2 + c;
          if (kType == backend::KvType::kInt4 && call.is_own_of(group, column) != own) continue;
          const float s = sums[t].c[half * 2 + c];
          call.work.score(column, j) = (kType == backend::KvType::kInt8 ? s * k_scale : s) * scale;
        }
      }
    }
  }

  // One warp per 16 dimensions.
  QUIRE_DEVICE static void weigh(const Call& call, Product (&merged)[kDimTiles][kColumnTiles]) {
    const std::uint32_t num_tiles = call.a.kv.layout.width() / kTileOutputs;
    QUIRE_UNROLLED for (unsigned i = 0; i < kDimTiles; ++i) {
      const std::uint32_t tile = i * kWarps + thread() / kWarp;
      if (tile >= num_tiles) continue;
      Product sums[kColumnTiles];
      QUIRE_ROLLED for (unsigned first = 0; first < kGroups; first += kAhead) {
        const std::uint32_t groups = call.groups >> first & kOfAhead;
        if (groups == 0) continue;
        const bool are_plain = ((call.in_one & ~call.own_groups()) >> first & kOfAhead) == groups;
        if (!are_plain || !add_plain_values(call, first, tile, sums)) add_all_values(call, first, tile, sums);
      }
      merge_span(call, sums, merged[i]);
    }
  }

  // Adds groups whose V is stored as the tensor cores take it. False, and nothing is added: a value that only some rows
  // see is not finite.
  QUIRE_DEVICE static bool add_plain_values(const Call& call, unsigned first, std::uint32_t tile,
                                            Product (&sums)[kColumnTiles]) {
    const unsigned lane = thread() % kWarp;
    const std::size_t to_tile = place_in_values(call, tile);
    RawKvFragment<kType> raw[kAhead];  // arbitrary data for a group that is not there
    QUIRE_UNROLLED for (unsigned i = 0; i < kAhead; ++i) raw[i] = load_values(call.stored(first + i) + to_tile);
    if ((call.in_one & call.mixed) >> first & kOfAhead) {
      bool faulty = false;
      QUIRE_UNROLLED for (unsigned i = 0; i < kAhead; ++i) {
        if (!call.lies_in_one(first + i) || !call.is_mixed(first + i)) continue;
        faulty = faulty || holds_fault(stored_values(call, first + i, raw[i]));
      }
      if (any_of_warp(faulty)) return false;
    }
    QUIRE_UNROLLED for (unsigned i = 0; i < kAhead; i += 2) {
      const unsigned group = first + i;
      if ((call.in_one >> group & 3u) == 0) continue;
      KvFragment v[2];
      QUIRE_UNROLLED for (unsigned n = 0; n < 2; ++n) {
        if (call.lies_in_one(group + n)) v[n] = stored_values(call, group + n, raw[i + n]);
      }
      add_two(v, call.lies_in_one(group), call.lies_in_one(group + 1), sums,
              [&](unsigned t) { return call.work.weights(t * kTileRows + lane / 4, group / 2, lane % 4); });
    }
    return true;
  }
  // Byte offset in a group of the lane's part of a V tile.
  QUIRE_DEVICE static std::size_t place_in_values(const Call& call, std::uint32_t tile) {
    return call.code_bytes() + (tile * kWarp + thread() % kWarp) * sizeof(RawKvFragment<kType>);
  }
  QUIRE_DEVICE static RawKvFragment<kType> load_values(const std::byte* at) {
    return load_fragment<kType>(reinterpret_cast<const RawKvFragment<kType>*>(at));
  }
  QUIRE_DEVICE static KvFragment stored_values(const Call& call, unsigned group, const RawKvFragment<kType>& raw) {
    StepPairs steps{};
    if constexpr (kType == backend::KvType::kInt4) {
      steps = step_pairs(call.stored(group) + call.a.kv.layout.v_scales_at(), KvLayout::kGroup, 0, thread() % kWarp);
    }
    return widened<kType>(raw, steps);
  }

  // Adds any groups, one after another.
  QUIRE_DEVICE static void add_all_values(const Call& call, unsigned first, std::uint32_t tile,
                                          Product (&sums)[kColumnTiles]) {
    QUIRE_ROLLED for (unsigned group = first; group < first + kAhead; ++group) {
      if ((call.groups >> group & 1u) == 0) continue;
      if (call.lies_in_one(group)) {
        add_group(call, group, false,
                  stored_values(call, group, load_values(call.stored(group) + place_in_values(call, tile))), sums);
      } else if (call.gathers(group)) {
        add_group(call, group, false, call.built(group, tile, false, /*of_k=*/false), sums);
      }
      if (call.is_own(group)) add_group(call, group, true, call.built(group, tile, true, /*of_k=*/false), sums);
    }
  }
  QUIRE_DEVICE static void add_group(const Call& call, unsigned group, bool own, const KvFragment& v,
                                     Product (&sums)[kColumnTiles]) {
    const unsigned lane = thread() % kWarp;
    const auto is_left_out = [&](unsigned column) {
      return call.is_own(group) && call.is_own_of(group, column) != own;
    };
    const bool has_faults = call.is_mixed(group) && any_of_warp(holds_fault(v));
    const KvFragment left = has_faults ? without_faults(v) : v;
    QUIRE_UNROLLED for (unsigned t = 0; t < kColumnTiles; ++t) {
      const unsigned column = t * kTileRows + lane / 4;
      const Words4& two = call.work.weights(column, group / 2, lane % 4);
      const bool out = is_left_out(column);
      add_product(sums[t], left.words, {out ? 0u : two.words[group % 2 * 2], out ? 0u : two.words[group % 2 * 2 + 1]});
    }
    if (!has_faults) return;
    add_faults(
        call, group, sums,
        [&](unsigned away, unsigned word) { return bits_of(shuffle_xor(f32_of_bits(v.words[word]), away)); },
        is_left_out);
  }

  // Half a warp per column.
  QUIRE_DEVICE static void accumulate(const Call& call) {
    const unsigned lane = thread() % kSumLanes;
    for (unsigned column = thread() / kSumLanes; column < call.unit.num_queries; column += kThreads / kSumLanes) {
      const std::uint32_t at_row = call.work.row[column];
      const RowOfBatch& row = call.a.batch.rows[at_row];
      const float* max_and_sum =
          call.a.max_and_sum + 2 * (std::size_t{at_row} * call.a.spec.num_heads + call.work.head[column]);
      const float inverse = quotient(1.0f, max_and_sum[1]);
      QUIRE_ROLLED for (unsigned group = 0; group < kGroups; ++group) {
        if (!call.sees(column, group, lane)) continue;
        const float weight = exp_near(call.work.score(column, group * kSumLanes + lane) - max_and_sum[0]);
        add_whole(call.a.accumulated_scores + row.first_accumulated_score + call.span * kGroups + group,
                  accumulated_score_of(weight, inverse));
      }
    }
  }
};

// Narrow kernels have the heads of one row as columns, wide ones those of several rows. kMinBlocks: left to itself, the
// compiler aims at more blocks than registers allow, or at fewer than shared memory allows.
struct AttendBf16 : AttendTiles<backend::KvType::kBF16, 1, 256> {
  static constexpr unsigned kMinBlocks = 3;
  static constexpr unsigned kMinBlocksBeforeSm90 = 2;
};
struct AttendBf16Wide : AttendTiles<backend::KvType::kBF16, 4, 128> {
  static constexpr unsigned kMinBlocks = 2;
};
struct AttendFp8 : AttendTiles<backend::KvType::kFp8, 1, 256> {
  static constexpr unsigned kMinBlocks = 3;
  static constexpr unsigned kMinBlocksBeforeSm90 = 2;
};
struct AttendFp8Wide : AttendTiles<backend::KvType::kFp8, 4, 128> {
  static constexpr unsigned kMinBlocks = 2;
};
struct AttendInt8 : AttendTiles<backend::KvType::kInt8, 1, 256> {
  static constexpr unsigned kMinBlocks = 3;
  static constexpr unsigned kMinBlocksBeforeSm90 = 2;
};
struct AttendInt8Wide : AttendTiles<backend::KvType::kInt8, 4, 128> {
  static constexpr unsigned kMinBlocks = 2;
};
struct AttendInt4 : AttendTiles<backend::KvType::kInt4, 1, 128> {  // with 256 dimensions registers spilled
  static constexpr unsigned kMinBlocks = 2;
};
struct AttendInt4Wide : AttendTiles<backend::KvType::kInt4, 4, 128> {
  static constexpr unsigned kMinBlocks = 2;
};

}  // namespace quire::gpu
