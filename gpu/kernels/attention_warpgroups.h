// attention_tiles.h for prompts over K and V in bf16, fp8 and int8, by instructions that sm_90a alone has: four warps multiply at a time,
// copies come in bulk. Equations, roundings and the order of every sum are those of attention_tiles.h; what one instruction does inside is
// the hardware's, and measured to be that of the others on an H200. There it takes longer than single warps: off
// (GpuOptions).
//   A unit has 48 columns, half as many again as single warps have at most (with 64 two blocks to a multiprocessor have too few registers),
//   and a block two warpgroups. Of K they take 64 positions each in turn, a warp a group, whose tiles are the left side; of V a warp has 16
//   dimensions. Right sides are q and the span's weights, in core matrices of 8 columns × 8 inputs. A warp besides asks for copies, K and
//   V of a group each for itself, up to six ahead (eleven in fp8 and int8): while a span's weights are found, its V comes. Two blocks fit a
//   multiprocessor, so that one multiplies while the other finds weights.
// Shape   as attention_tiles.h; heads that lie in 64 or 128 dimensions; no trees, no votes. Of 64 dimensions one of the two
//         warpgroups has all of V.
// Launch  grid.x: units of up to kDeepQueries, grid.y: kv heads.
// Order   products of groups that nobody sees, and of positions that a column does not see, are by 0.
// Source  FlashAttention-3 (Shah et al. 2024): wgmma, a warp for copies, exponentials beside products; the rest ours.
#pragma once

#include "gpu/device/warpgroup_matrix.h"
#include "gpu/kernels/tile_spans.h"

namespace quire::gpu {

inline constexpr std::uint32_t kMostDeepDims = 128;

// Whether one of these kernels has it.
constexpr bool goes_by_warpgroups(const KvLayout& layout) {
  return KvLayout::in_tiles(layout.type) && layout.type != backend::KvType::kInt4 &&
         (layout.width() == kMostDeepDims / 2 || layout.width() == kMostDeepDims);
}

template <backend::KvType kType>
struct AttendWarpgroups {
  using Args = AttendTilesArgs;
  static constexpr unsigned kColumns = kDeepQueries;
  static constexpr unsigned kColumnTiles = kColumns / kTileRows;
  static constexpr unsigned kCopier = kTileWarps;  // a warp
  static constexpr unsigned kThreads = (kCopier + 1) * kWarp;
  static constexpr unsigned kMinBlocks = 2;
  static constexpr std::uint32_t kMostDims = kMostDeepDims;
  static constexpr unsigned kStages = kType == backend::KvType::kBF16 ? 6 : 11;

 private:
  static constexpr unsigned kMatrixRows = 8;                       // of a core matrix
  static constexpr std::uint32_t kMatrixBytes = kMatrixRows * 16;  // of bf16
  static constexpr bool kHasScales = kType == backend::KvType::kInt8;
  static constexpr std::uint32_t kScaleBytes = kHasScales ? 2 * KvLayout::kGroup * sizeof(float) : 0;  // K's and V's

 public:
  struct Work : TileColumns<kColumnTiles> {
    static constexpr std::uint32_t kToNextInputs = kMatrixBytes;
    static constexpr std::uint32_t kToNextColumns = backend::kSpanTokens / kMatrixRows * kMatrixBytes;
    static constexpr std::uint32_t kToNextQueries = kMostDims / kMatrixRows * kMatrixBytes;
    static constexpr std::uint32_t kCodeBytes = KvLayout::kGroup * kMostDims * KvLayout::bits_of(kType) / 8;
    static constexpr std::uint32_t kStageBytes = kCodeBytes + kScaleBytes;
    static constexpr unsigned kScoreStride = backend::kSpanTokens + 4;  // all banks for a warp's scores

    alignas(16) std::byte queries[kColumnTiles * kToNextQueries];
    std::byte weights[kColumnTiles * kToNextColumns];
    std::byte stages[kStages][kStageBytes];
    alignas(8) float z[kColumns][kScoreStride];
    float k_scales[kHasScales ? backend::kSpanTokens : 1];  // int8's
    alignas(8) float v_scales[kHasScales ? backend::kSpanTokens : 1];
    const std::byte* groups[backend::kSpanTokens / KvLayout::kGroup];  // where each that is there lies: the copier's
    std::byte barriers[(2 * kStages + 1) * sizeof(PhaseBarrier)];

    QUIRE_DEVICE std::uint32_t& query_pair(unsigned column, std::uint32_t d) {
      return *reinterpret_cast<std::uint32_t*>(queries + in_matrices(column, d, kToNextQueries));
    }
    QUIRE_DEVICE std::uint32_t& weight_pair(unsigned column, unsigned j) {
      return *reinterpret_cast<std::uint32_t*>(weights + in_matrices(column, j, kToNextColumns));
    }
    QUIRE_DEVICE float& score(unsigned column, unsigned j) { return z[column][j]; }
    QUIRE_DEVICE FloatPair& score_pair(unsigned column, unsigned j) {
      return *reinterpret_cast<FloatPair*>(&z[column][j]);
    }
    QUIRE_DEVICE RowsInShared queries_of(std::uint32_t tile) const {
      return {shared_address(queries) + tile * 2 * kToNextInputs, kToNextInputs, kToNextQueries};
    }
    QUIRE_DEVICE RowsInShared weights_of(unsigned group) const {
      return {shared_address(weights) + group * 2 * kToNextInputs, kToNextInputs, kToNextColumns};
    }
    QUIRE_DEVICE PhaseBarrier& filled(unsigned stage) { return barrier(stage); }
    QUIRE_DEVICE PhaseBarrier& emptied(unsigned stage) { return barrier(kStages + stage); }
    QUIRE_DEVICE PhaseBarrier& met() { return barrier(2 * kStages); }

   private:
    static constexpr std::uint32_t in_matrices(unsigned column, unsigned input, std::uint32_t to_next_columns) {
      return column / kMatrixRows * to_next_columns + input / kMatrixRows * kMatrixBytes + column % kMatrixRows * 16 +
             input % kMatrixRows * 2;
    }
    QUIRE_DEVICE PhaseBarrier& barrier(unsigned i) { return reinterpret_cast<PhaseBarrier*>(barriers)[i]; }
  };
  static constexpr std::size_t kSharedBytes = sizeof(Work);
  static_assert(kMinBlocks * (kSharedBytes + 1024) <= 228 * 1024,
                "what a multiprocessor has; 1 KiB of a block is the driver's");

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const AttentionUnit& unit = a.units[block().x];
    if (unit.num_queries == 0) return;
    Call call{a, unit, a.batch.rows[unit.first_row], *reinterpret_cast<Work*>(shared), block().y};
    const unsigned warp = thread() / kWarp;
    if (warp != kCopier) {
      take_queries(call);
      show_to_products();
    } else if (thread() == kCopier * kWarp) {
      begin_barriers(call.work);
    }
    sync_block();
    if (warp == kCopier) {
      fetch_all(call);
    } else {
      attend(call);
    }
  }

 private:
  using Call = TileCall<kType, kColumnTiles, Work>;
  using Stage = StageOf<kStages>;
  using Products = WarpgroupProducts<kColumns>;
  static constexpr unsigned kGroups = Call::kGroups;
  static constexpr unsigned kChain = 4;  // products under way at once
  static constexpr unsigned kGroupsAtOnce = kWarpgroup / kWarp;

  static_assert(kGroupsAtOnce <= kStages && kChain <= kStages, "whoever waits for so many copies has them all");

  // What has been copied of the spans so far, and whose turn it is to meet.
  struct Progress {
    std::uint32_t copies = 0;
    std::uint32_t parity = 0;
  };
  // Of the span at hand: K of group after group, then V.
  QUIRE_DEVICE static std::uint32_t copy_of(const Call& call, const Progress& at, unsigned group, bool of_v) {
    return at.copies + count_of(call.groups & ((1u << group) - 1)) + (of_v ? count_of(call.groups) : 0);
  }
  QUIRE_DEVICE static std::uint32_t count_of(std::uint32_t groups) {
    groups -= groups >> 1 & 0x5555u;
    groups = (groups & 0x3333u) + (groups >> 2 & 0x3333u);
    groups = (groups + (groups >> 4)) & 0x0f0fu;
    return (groups + (groups >> 8)) & 0x1fu;
  }
  QUIRE_DEVICE static bool is_there(const Call& call, unsigned group) { return (call.groups >> group & 1u) != 0; }

  QUIRE_DEVICE static void begin_barriers(Work& work) {
    for (unsigned stage = 0; stage < kStages; ++stage) {
      work.filled(stage).begin(1);
      work.emptied(stage).begin(kTileWarps);
    }
    work.met().begin(kTileWarps);
  }

  // ---- the copier's

  QUIRE_DEVICE static void fetch_all(Call& call) {
    const unsigned lane = thread() % kWarp;
    std::uint32_t copy = 0;
    for (std::uint32_t span = call.unit.first_span; span <= call.unit.last_span; ++span) {
      call.go_to(span);
      if (call.groups == 0) continue;
      if (lane < kGroups && is_there(call, lane)) {
        const std::uint32_t slot = slot_of(call.a.batch, call.a.kv.layout, call.row, call.start(lane));
        call.work.groups[count_of(call.groups & ((1u << lane) - 1))] =
            call.a.kv.group(call.a.spec.layer, call.kv_head, slot);
      }
      sync_warp();
      const std::uint32_t count = count_of(call.groups);
      QUIRE_ROLLED for (std::uint32_t first = 0; first < 2 * count; first += kStages) {
        if (lane < kStages && first + lane < 2 * count) fetch(call, count, first + lane, copy + first + lane);
        sync_warp();
      }
      copy += 2 * count;
    }
  }
  // A lane each, of as many as there are stages: K of the span's groups, then V. With K come the scales of both:
  // those of V are wanted before V is.
  QUIRE_DEVICE static void fetch(const Call& call, std::uint32_t count, std::uint32_t of_span, std::uint32_t copy) {
    const KvLayout& layout = call.a.kv.layout;
    const auto bytes = static_cast<std::uint32_t>(layout.code_bytes());
    const bool of_v = of_span >= count;
    const Stage to(copy);
    PhaseBarrier& filled = call.work.filled(to.stage);
    const std::byte* codes = call.work.groups[of_v ? of_span - count : of_span];
    call.work.emptied(to.stage).wait(to.parity_before());
    filled.arrive_and_announce(bytes + (of_v ? 0 : kScaleBytes));
    copy_in_bulk(call.work.stages[to.stage], codes + (of_v ? bytes : 0), bytes, filled);
    if (kHasScales && !of_v) {
      copy_in_bulk(call.work.stages[to.stage] + Work::kCodeBytes, codes + layout.k_scales_at(), kScaleBytes, filled);
    }
  }

  // ---- the others'

  // Who is done with a span's V goes on with the next one's K: what the others still look at nobody changes before they meet.
  QUIRE_DEVICE static void attend(Call& call) {
    Progress at;
    Product merged[1][kColumnTiles];
    for (std::uint32_t span = call.unit.first_span; span <= call.unit.last_span; ++span) {
      call.go_to(span);
      if (call.groups == 0) continue;
      score(call, at);
      meet(call, at);
      soften(call);
      show_to_products();
      meet(call, at);
      weigh(call, at, merged[0]);
      at.copies += 2 * count_of(call.groups);
    }
    meet(call, at);  // where no span had anything, nobody has
    end_columns(call);
    meet(call, at);
    put_columns(call, merged);
  }

  // All warps but the copier have come here.
  QUIRE_DEVICE static void meet(const Call& call, Progress& at) {
    sync_warp();
    if (thread() % kWarp == 0) call.work.met().arrive();
    call.work.met().wait(at.parity);
    at.parity ^= 1;
  }

  // A warp a group, a warpgroup four of them, one after the other. Every warp passes every copy, so that none is more than a phase behind.
  QUIRE_DEVICE static void score(const Call& call, const Progress& at) {
    const unsigned warp = thread() / kWarp;
    QUIRE_ROLLED for (unsigned first = 0; first < kGroups; first += kGroupsAtOnce) {
      if ((call.groups >> first & ((1u << kGroupsAtOnce) - 1)) == 0) continue;
      const bool is_turn = first / kGroupsAtOnce % 2 == warp / kGroupsAtOnce;
      const unsigned own = first + warp % kGroupsAtOnce;
      QUIRE_ROLLED for (unsigned group = first; group < first + kGroupsAtOnce; ++group) {
        if (!is_there(call, group)) continue;
        const Stage from(copy_of(call, at, group, /*of_v=*/false));
        call.work.filled(from.stage).wait(from.parity);
        if (!is_turn || group != own) leave(call, from);
      }
      if (!is_turn) continue;
      typename Products::Sums sums = {};
      add_scores(call, at, own, sums);
      if (is_there(call, own)) put_scores(call, own, sums);
    }
  }
  // Of a group that nobody sees, along with the others, by 0.
  QUIRE_DEVICE static void add_scores(const Call& call, const Progress& at, unsigned group,
                                      typename Products::Sums& sums) {
    const std::uint32_t num_tiles = call.a.kv.layout.width() / kTileInputs;
    const Stage from(copy_of(call, at, group, /*of_v=*/false));
    QUIRE_ROLLED for (std::uint32_t first = 0; first < num_tiles; first += kChain) {
      KvFragment tiles[kChain];
      if (is_there(call, group)) {
        QUIRE_UNROLLED for (unsigned i = 0; i < kChain; ++i) {
          tiles[i] = fragment_of(call.work.stages[from.stage], first + i, thread() % kWarp);
        }
        if (first + kChain == num_tiles) {
          if constexpr (kHasScales) take_scales(call, from, group);
          leave(call, from);
        }
      }
      Products products;
      products.begin(sums);
      QUIRE_UNROLLED for (unsigned i = 0; i < kChain; ++i) {
        products.add(sums, tiles[i].words, call.work.queries_of(first + i).descriptor());
      }
      products.finish(sums);
    }
  }
  QUIRE_DEVICE static void take_scales(const Call& call, Stage from, unsigned group) {
    const auto* scales = reinterpret_cast<const float*>(call.work.stages[from.stage] + Work::kCodeBytes);
    const unsigned lane = thread() % kWarp;
    if (lane >= KvLayout::kGroup) return;
    call.work.k_scales[group * KvLayout::kGroup + lane] = scales[lane];
    call.work.v_scales[group * KvLayout::kGroup + lane] = scales[KvLayout::kGroup + lane];
  }
  // All of the warp have what they want of the copy.
  QUIRE_DEVICE static void leave(const Call& call, Stage from) {
    sync_warp();
    if (thread() % kWarp == 0) call.work.emptied(from.stage).arrive();
  }
  QUIRE_DEVICE static void put_scores(const Call& call, unsigned group, const typename Products::Sums& sums) {
    const unsigned lane = thread() % kWarp;
    QUIRE_UNROLLED for (unsigned t = 0; t < kColumnTiles; ++t) {
      QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) {
        const unsigned column = t * kTileRows + lane % 4 * 2 + i % 2;
        const unsigned j = group * KvLayout::kGroup + lane / 4 + i / 2 * 8;
        const float s = kHasScales ? sums[t].c[i] * call.work.k_scales[j] : sums[t].c[i];
        call.work.score(column, j) = s * call.a.spec.scale;
      }
    }
  }

  // A warp 16 dimensions, if there are so many.
  QUIRE_DEVICE static void weigh(const Call& call, const Progress& at, Product (&merged)[kColumnTiles]) {
    const bool has_dims = thread() / kWarp < call.a.kv.layout.width() / kTileOutputs;
    typename Products::Sums sums = {};
    QUIRE_ROLLED for (unsigned first = 0; first < kGroups; first += kChain) {
      const std::uint32_t there = call.groups >> first & ((1u << kChain) - 1);
      if (there == 0) continue;
      bool apart = there != (1u << kChain) - 1;
      QUIRE_UNROLLED for (unsigned i = 0; i < kChain; ++i) apart = apart || call.is_mixed(first + i);
      if (!apart) {
        add_values(call, at, first, has_dims, sums);
        continue;
      }
      QUIRE_ROLLED for (unsigned group = first; group < first + kChain; ++group) {
        if (is_there(call, group)) add_mixed(call, at, group, has_dims, sums);
      }
    }
    if (has_dims) merge_span(call, sums, merged);
  }
  // Of groups that every row sees all of.
  QUIRE_DEVICE static void add_values(const Call& call, const Progress& at, unsigned first, bool has_dims,
                                      typename Products::Sums& sums) {
    KvFragment tiles[kChain];
    QUIRE_UNROLLED for (unsigned i = 0; i < kChain; ++i) tiles[i] = take_values(call, at, first + i, has_dims);
    if (!has_dims) return;
    Products products;
    products.begin(sums);
    QUIRE_UNROLLED for (unsigned i = 0; i < kChain; ++i) {
      products.add(sums, tiles[i].words, call.work.weights_of(first + i).descriptor());
    }
    products.finish(sums);
  }
  QUIRE_DEVICE static void add_mixed(const Call& call, const Progress& at, unsigned group, bool has_dims,
                                     typename Products::Sums& sums) {
    const Stage from(copy_of(call, at, group, /*of_v=*/true));
    const std::byte* codes = call.work.stages[from.stage];
    call.work.filled(from.stage).wait(from.parity);
    if (has_dims) {
      KvFragment v = fragment_of(codes, thread() / kWarp, thread() % kWarp);
      const bool faulty = call.is_mixed(group) && any_of_warp(holds_fault(v));
      if (faulty) v = without_faults(v);
      Products products;
      products.begin(sums);
      products.add(sums, v.words, call.work.weights_of(group).descriptor());
      products.finish(sums);
      if (faulty) {
        add_faults(
            call, group, sums,
            [&](unsigned away, unsigned word) {
              return fragment_of(codes, thread() / kWarp, thread() % kWarp ^ away).words[word];
            },
            [](unsigned) { return false; });
      }
    }
    leave(call, from);
  }
  // The warp's tile of the group, in registers, so that its place is free again.
  QUIRE_DEVICE static KvFragment take_values(const Call& call, const Progress& at, unsigned group, bool has_dims) {
    const Stage from(copy_of(call, at, group, /*of_v=*/true));
    call.work.filled(from.stage).wait(from.parity);
    KvFragment v;
    if (has_dims) v = fragment_of(call.work.stages[from.stage], thread() / kWarp, thread() % kWarp);
    leave(call, from);
    return v;
  }

  QUIRE_DEVICE static KvFragment fragment_of(const std::byte* codes, std::uint32_t tile, unsigned lane) {
    return widened<kType>(*place_of_fragment<kType>(codes, tile, lane), {});
  }
};

struct AttendBf16Deep : AttendWarpgroups<backend::KvType::kBF16> {};
struct AttendFp8Deep : AttendWarpgroups<backend::KvType::kFp8> {};
struct AttendInt8Deep : AttendWarpgroups<backend::KvType::kInt8> {};

}  // namespace quire::gpu
