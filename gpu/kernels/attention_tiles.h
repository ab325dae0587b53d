// Attention over the paged cache by the tensor cores, for K and V in bf16, fp8, int8 and int4. Rows, heads and spans are those of
// core/backend/ops.h; q is rounded to bf16, and so are the weights that V is multiplied by:
//   s_j = K_j · q, tiles of 16 dimensions ascending in one chain;  z_j = s_j * scale (int8: (s_j * K's scale) * scale)
//   m_s = max z_j;  e_j = exp(z_j - m_s);  l_s = sum16 by j mod 16 of e_j
//   o_s = V · p, groups of 16 positions ascending in one chain, p_j = bf16(e_j) (int8: bf16(e_j * V's scale))
//   int4: K and V are code · step + lowest rounded to bf16, those of the row's own group as they were before storing, likewise
// Spans are merged in ascending order as ops.h merges them: here, where a unit goes over all of them, or in MergeSpans. So a row
// has the same bits however rows are cut into units, whichever rows stand in the columns beside it, and whether its K and V were
// stored in this step or long ago:
//   - what a row does not see has weight 0 in its column. Of V's numbers that some see and some do not, those that are not finite are
//     left out of the product (0 times them is no 0) and then added to the columns that see them;
//   - a tree's node has a unit for itself from the root's span on: its ancestors are gathered at their positions.
// Shape   qkv [T, (H + 2 G) D], out [T, H D]; D <= kMostDims. A unit: kColumns columns, 256 threads, grid.x: units, grid.y: kv heads.
// Order   of what a chain does within a tile: matrix.h. That a product by 0 leaves a sum as it is: to be proven on a device.
// Why it is long: it goes over a span in steps that share its memory: find, score, soften (tile_spans.h), weigh.
// Source  FlashAttention-2 (Dao 2023); GQA heads as rows: Flash-Decoding; fixed spans are ours.
#pragma once

#include "core/sample/math.h"
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
  using Query = typename Call::Query;
  static constexpr unsigned kColumns = Call::kColumns;
  static constexpr unsigned kSpan = Call::kSpan;
  static constexpr unsigned kGroups = Call::kGroups;
  static_assert(kSpan == kThreads && kWarps == kTileWarps);
  static constexpr unsigned kDimTiles = kMostDims / (kWarps * kTileOutputs);  // of a warp
  static constexpr unsigned kAhead = 8;  // tiles of K or V that a warp waits for at once

 public:
  static constexpr std::size_t kSharedBytes = sizeof(Work);
  static_assert(kSharedBytes <= 48 * 1024, "what a block has without asking");

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const AttentionUnit unit = a.units[block().x];
    if (unit.num_queries == 0) return;
    Call call{a, unit, a.batch.rows[unit.first_row], *reinterpret_cast<Work*>(shared), block().y, 0, 0};
    take_queries<kThreads>(call);
    begin_columns(call);
    sync_block();
    Product merged[kDimTiles][kColumnTiles];
    for (call.span = unit.first_span; call.span <= unit.last_span; ++call.span) {
      call.groups = call.groups_seen();
      if (call.groups == 0) continue;
      find(call);
      sync_block();
      score(call);
      sync_block();
      if (a.votes != nullptr) {
        vote(call);
      } else {
        soften(call);
        sync_block();
        weigh(call, merged);
      }
      sync_block();
    }
    if (a.votes == nullptr) finish_columns(call, merged);
  }

 private:
  // A thread a position.
  QUIRE_DEVICE static void find(const Call& call) {
    if ((call.groups >> thread() / KvLayout::kGroup & 1u) == 0) return;
    const KvLayout& layout = call.a.kv.layout;
    const std::uint32_t slot = slot_of(call.a.batch, layout, call.row, call.span * kSpan + thread());
    call.work.slots[thread()] = slot;
    if (slot == kUnseen || (kType != backend::KvType::kInt8 && thread() % KvLayout::kGroup != 0)) return;
    const std::byte* group = call.a.kv.group(call.a.spec.layer, call.kv_head, slot);
    if (thread() % KvLayout::kGroup == 0) call.work.groups[thread() / KvLayout::kGroup] = group;
    if constexpr (kType == backend::KvType::kInt8) {
      call.work.k_scales[thread()] = int8_scale_at(group + layout.k_scales_at(), slot);
      call.work.v_scales[thread()] = int8_scale_at(group + layout.v_scales_at(), slot);
    }
  }

  // A warp a group. All of K and V that it stands for is on its way before it waits for the first of it.
  QUIRE_DEVICE static void score(const Call& call) {
    for (unsigned group = thread() / kWarp; group < kGroups; group += kWarps) {
      if (lies_in_one(call, group)) ask_for(call.stored(group), 2 * call.a.kv.layout.code_bytes());
    }
    for (unsigned group = thread() / kWarp; group < kGroups; group += kWarps) {
      if ((call.groups >> group & 1u) == 0) continue;
      if (call.is_stored(group)) {
        Product sums[kColumnTiles];
        if (call.gathers(group)) {
          add_built_scores(call, group, /*own=*/false, sums);
        } else {
          add_stored_scores(call, group, sums);
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

  QUIRE_DEVICE static void ask_for(const std::byte* memory, std::size_t bytes) {
    constexpr std::size_t kLine = 128;
    for (std::size_t at = thread() % kWarp * kLine; at < bytes; at += kWarp * kLine) will_read(memory + at);
  }

  QUIRE_DEVICE static void add_stored_scores(const Call& call, unsigned group, Product (&sums)[kColumnTiles]) {
    const KvLayout& layout = call.a.kv.layout;
    const unsigned lane = thread() % kWarp;
    const std::byte* codes = call.stored(group);
    const std::uint32_t num_tiles = layout.width() / kTileInputs;
    QUIRE_ROLLED for (std::uint32_t first = 0; first < num_tiles; first += kAhead) {
      RawKvFragment<kType> raw[kAhead] = {};
      QUIRE_UNROLLED for (unsigned i = 0; i < kAhead; ++i) {
        if (first + i < num_tiles) raw[i] = raw_kv_fragment<kType>(codes, first + i, lane);
      }
      QUIRE_UNROLLED for (unsigned i = 0; i < kAhead; ++i) {
        if (first + i >= num_tiles) break;
        StepPairs steps{};
        if constexpr (kType == backend::KvType::kInt4) {
          steps = step_pairs(codes + layout.k_scales_at(), layout.width(), (first + i) * kTileInputs, lane);
        }
        add_scores(call, first + i, widened<kType>(raw[i], steps), sums);
      }
    }
  }
  QUIRE_DEVICE static void add_built_scores(const Call& call, unsigned group, bool own, Product (&sums)[kColumnTiles]) {
    const std::uint32_t num_tiles = call.a.kv.layout.width() / kTileInputs;
    QUIRE_ROLLED for (std::uint32_t tile = 0; tile < num_tiles; ++tile) {
      add_scores(call, tile, call.built(group, tile, own, /*of_k=*/true), sums);
    }
  }
  QUIRE_DEVICE static void add_scores(const Call& call, std::uint32_t tile, const KvFragment& k,
                                      Product (&sums)[kColumnTiles]) {
    const unsigned lane = thread() % kWarp;
    QUIRE_UNROLLED for (unsigned t = 0; t < kColumnTiles; ++t) {
      const std::uint16_t* q = &call.work.q[t * kTileRows + lane / 4][tile * kTileInputs + lane % 4 * 2];
      const std::uint32_t words[2] = {word_at(q), word_at(q + 8)};
      add_product(sums[t], k.words, words);
    }
  }
  QUIRE_DEVICE static void put_scores(const Call& call, unsigned group, bool own, const Product (&sums)[kColumnTiles]) {
    const unsigned lane = thread() % kWarp;
    QUIRE_UNROLLED for (unsigned t = 0; t < kColumnTiles; ++t) {
      QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) {
        const unsigned column = t * kTileRows + lane % 4 * 2 + i % 2;
        const unsigned j = group * KvLayout::kGroup + lane / 4 + i / 2 * 8;
        if (kType == backend::KvType::kInt4 && call.is_own_of(group, column) != own) continue;
        const float s = kType == backend::KvType::kInt8 ? sums[t].c[i] * call.work.k_scales[j] : sums[t].c[i];
        call.work.score(column, j) = s * call.a.spec.scale;
      }
    }
  }

  // A warp 16 dimensions.
  QUIRE_DEVICE static void weigh(const Call& call, Product (&merged)[kDimTiles][kColumnTiles]) {
    const std::uint32_t num_tiles = call.a.kv.layout.width() / kTileOutputs;
    QUIRE_UNROLLED for (unsigned i = 0; i < kDimTiles; ++i) {
      const std::uint32_t tile = i * kWarps + thread() / kWarp;
      if (tile >= num_tiles) continue;
      Product sums[kColumnTiles];
      add_values(call, tile, sums);
      merge_span(call, sums, merged[i]);
    }
  }

  QUIRE_DEVICE static void add_values(const Call& call, std::uint32_t tile, Product (&sums)[kColumnTiles]) {
    const KvLayout& layout = call.a.kv.layout;
    const unsigned lane = thread() % kWarp;
    QUIRE_ROLLED for (unsigned first = 0; first < kGroups; first += kAhead) {
      if ((call.groups >> first & ((1u << kAhead) - 1)) == 0) continue;
      RawKvFragment<kType> raw[kAhead] = {};
      QUIRE_UNROLLED for (unsigned i = 0; i < kAhead; ++i) {
        if (!lies_in_one(call, first + i)) continue;
        raw[i] = raw_kv_fragment<kType>(call.stored(first + i) + layout.code_bytes(), tile, lane);
      }
      QUIRE_UNROLLED for (unsigned i = 0; i < kAhead; ++i) {
        const unsigned group = first + i;
        if (lies_in_one(call, group)) {
          StepPairs steps{};
          if constexpr (kType == backend::KvType::kInt4) {
            steps = step_pairs(call.stored(group) + layout.v_scales_at(), KvLayout::kGroup, 0, lane);
          }
          add_group(call, group, /*own=*/false, widened<kType>(raw[i], steps), sums);
        }
      }
      QUIRE_ROLLED for (unsigned group = first; group < first + kAhead; ++group) {
        if ((call.groups >> group & 1u) == 0) continue;
        if (call.gathers(group)) add_group(call, group, false, call.built(group, tile, false, /*of_k=*/false), sums);
        if (call.is_own(group)) add_group(call, group, true, call.built(group, tile, true, /*of_k=*/false), sums);
      }
    }
  }
  QUIRE_DEVICE static bool lies_in_one(const Call& call, unsigned group) {
    return (call.groups >> group & 1u) != 0 && call.is_stored(group) && !call.gathers(group);
  }

  QUIRE_DEVICE static void add_group(const Call& call, unsigned group, bool own, const KvFragment& v,
                                     Product (&sums)[kColumnTiles]) {
    std::uint32_t weights[kColumnTiles][2];
    const unsigned lane = thread() % kWarp;
    QUIRE_UNROLLED for (unsigned t = 0; t < kColumnTiles; ++t) {
      const unsigned column = t * kTileRows + lane / 4;
      const std::uint16_t* p = call.work.weights(column) + group * KvLayout::kGroup + lane % 4 * 2;
      const bool is_zero = call.is_own(group) && call.is_own_of(group, column) != own;
      weights[t][0] = is_zero ? 0u : word_at(p);
      weights[t][1] = is_zero ? 0u : word_at(p + 8);
    }
    if (call.is_mixed(group) && any_of_warp(holds_fault(v))) {
      const KvFragment clean = without_faults(v);
      QUIRE_UNROLLED for (unsigned t = 0; t < kColumnTiles; ++t) add_product(sums[t], clean.words, weights[t]);
      add_faults(
          call, group, sums,
          [&](unsigned away, unsigned word) { return bits_of(shuffle_xor(f32_of_bits(v.words[word]), away)); },
          [&](unsigned column) { return call.is_own(group) && call.is_own_of(group, column) != own; });
      return;
    }
    QUIRE_UNROLLED for (unsigned t = 0; t < kColumnTiles; ++t) add_product(sums[t], v.words, weights[t]);
  }

  // Half a warp a column.
  QUIRE_DEVICE static void vote(const Call& call) {
    const unsigned lane = thread() % kSumLanes;
    for (unsigned column = thread() / kSumLanes; column < call.unit.num_queries; column += kThreads / kSumLanes) {
      const Query query = call.query_of(column);
      const RowOfBatch& row = call.a.batch.rows[query.row];
      const float* max_and_sum = call.a.max_and_sum + 2 * (std::size_t{query.row} * call.a.spec.num_heads + query.head);
      const float inverse = quotient(1.0f, max_and_sum[1]);
      QUIRE_ROLLED for (unsigned group = 0; group < kGroups; ++group) {
        if (!call.sees(column, group, lane)) continue;
        const float weight = sample::exp_f32(call.work.z[column][group * kSumLanes + lane] - max_and_sum[0]);
        add_whole(call.a.votes + row.first_vote + call.span * kGroups + group, vote_of(weight, inverse));
      }
    }
  }

  QUIRE_DEVICE static std::uint32_t word_at(const std::uint16_t* x) {
    return *reinterpret_cast<const std::uint32_t*>(x);
  }
};

// By what a tile's columns hold: the heads of one row, or of several.
struct AttendBf16 : AttendTiles<backend::KvType::kBF16, 1, 256> {};
struct AttendBf16Wide : AttendTiles<backend::KvType::kBF16, 4, 128> {};
struct AttendFp8 : AttendTiles<backend::KvType::kFp8, 1, 256> {
  static constexpr unsigned kMinBlocks = 3;  // aiming at four, it spilled
};
struct AttendFp8Wide : AttendTiles<backend::KvType::kFp8, 4, 128> {};
struct AttendInt8 : AttendTiles<backend::KvType::kInt8, 1, 256> {
  static constexpr unsigned kMinBlocks = 3;  // likewise
};
struct AttendInt8Wide : AttendTiles<backend::KvType::kInt8, 4, 128> {};
struct AttendInt4 : AttendTiles<backend::KvType::kInt4, 1, 128> {  // with 256 dimensions it spilled
  static constexpr unsigned kMinBlocks = 2;  // aiming at four, of 64 registers, it spilled with 128, too
};
struct AttendInt4Wide : AttendTiles<backend::KvType::kInt4, 4, 128> {};

}  // namespace quire::gpu
