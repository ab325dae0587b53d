// Product of linear.h for many rows by weights that are multiplied in bf16 (bf16, w16a16, int8, fp8, int4), with
// instructions that only sm_90a has: four warps multiply together, and copies are bulk copies. Slices, chains, the
// order of sums and the fragments of weights are linear.h's. The order within one instruction is the hardware's; on an
// H200 it was measured to be that of the other kernels (tools/gpu_measure, stage strict).
//   A block has two warpgroups. With eight output tiles each has one tile of every pair and all of the block's rows;
//   with four, both have all tiles, each with half of the rows. One more warp issues the copies, a few lanes one piece
//   each, as many steps of 64 inputs ahead as there is room for. Weights go through registers, where they become bf16;
//   rows do not. A step's weights are loaded and widened while the step before is multiplied.
// Shape   x in row blocks (weight_layout.h): their steps are adjacent, 16 KiB each, of which as much is copied as there
//         are rows.
// Launch  linear_grid.h.
// Source  a copying warp, and steps in a ring: CUTLASS, FlashAttention-3 (Shah et al. 2024); the rest ours.
#pragma once

#include <algorithm>

#include "gpu/device/warpgroup_matrix.h"
#include "gpu/kernels/linear_forms.h"
#include "gpu/kernels/linear_sums.h"

namespace quire::gpu {

// kTiles of outputs and kRows per block.
template <typename Form, unsigned kTiles, unsigned kRows>
struct LinearWarpgroups {
  using Args = LinearArgs;
  static constexpr unsigned kPairs = kTiles / kPairTiles;
  static constexpr unsigned kOfRows = kManyTiles / kTiles;  // warpgroups that share the rows
  static constexpr unsigned kRowsOfGroup = kRows / kOfRows;
  static constexpr unsigned kRowTiles = kRowsOfGroup / kTileRows;  // per warp
  static constexpr unsigned kBlockRowTiles = kRows / kTileRows;
  static constexpr unsigned kCopier = 2 * kWarpgroup / kWarp;  // index of the copying warp
  static constexpr unsigned kThreads = (kCopier + 1) * kWarp;
  static constexpr unsigned kMinBlocks = 1;
  static constexpr bool kWaitsForPreviousKernel = true;
  static constexpr std::uint32_t kTileBytes = step_bytes(Form::kFormat);
  static constexpr std::uint32_t kRowTileBytes = Form::Rows::kStepBytes;
  static constexpr std::size_t kStageBytes = kTiles * kTileBytes + kBlockRowTiles * kRowTileBytes;
  static constexpr unsigned kMostStages = 12;
  static constexpr unsigned kStages = std::min(192 * 1024 / unsigned{kStageBytes}, kMostStages);
  static constexpr std::size_t kSharedBytes = kStages * (kStageBytes + 2 * sizeof(PhaseBarrier));
  static_assert((kTiles == kManyTiles || kTiles == kFewTiles) && kRowBlock % kRows == 0);

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const Call call(a, shared);
    Totals totals(a, call.at);
    if (thread() == 0) call.begin();
    sync_block();
    if (call.warp == kCopier) Copier(call).begin();
    wait_for_previous_kernel();
    if (call.warp == kCopier) {
      Copier(call).fetch_all();
    } else {
      call.multiply(totals);
    }
    float* factors = reinterpret_cast<float*>(shared) + call.group_of_rows() * kRowsOfGroup * Totals::kFactorStride;
    totals.finish_apart(call.tile_of_pair(), factors);
  }

 private:
  using Stage = StageOf<kStages>;
  using Totals = LinearTotals<Form, kRowTiles, 1, kPairs>;
  using Products = WarpgroupProducts<kRowsOfGroup>;
  static constexpr std::uint32_t kToNextInputs = kTileRows * 16;
  static constexpr std::uint32_t kToNextRows = kRowTileBytes;

  static_assert(kRows * Totals::kFactorStride * sizeof(float) <= kStages * kStageBytes);

  struct Call {
    const Args& a;
    std::byte* const shared;
    const unsigned warp;
    LinearPlace at;
    std::uint32_t row_tiles;  // row tiles that exist

    QUIRE_DEVICE Call(const Args& args, std::byte* memory)
        : a(args), shared(memory), warp(thread() / kWarp), at(args, kRowTiles, kPairs, 1) {
      at.first_row = first_of_block() + group_of_rows() * kRowsOfGroup;
      at.tiles[0] = warp == kCopier ? at.num_tiles : gpu::tile_of_pair(a, at.group * kPairs + at.pair, tile_of_pair());
      const std::uint32_t left = pieces_of(a.num_rows - first_of_block(), kTileRows);
      row_tiles = left < kBlockRowTiles ? left : kBlockRowTiles;
    }
    QUIRE_DEVICE std::uint32_t first_of_block() const { return block().x * kRows; }
    QUIRE_DEVICE unsigned tile_of_pair() const { return warp / kPairs % kPairTiles; }
    QUIRE_DEVICE unsigned group_of_rows() const { return warp / kTiles; }
    QUIRE_DEVICE std::byte* stage(Stage which) const { return shared + which.stage * kStageBytes; }
    QUIRE_DEVICE std::byte* rows_of(Stage which) const { return stage(which) + kTiles * kTileBytes; }
    QUIRE_DEVICE PhaseBarrier& filled(Stage which) const { return barriers()[which.stage]; }
    QUIRE_DEVICE PhaseBarrier& emptied(Stage which) const { return barriers()[kStages + which.stage]; }

    QUIRE_DEVICE void begin() const {
      for (unsigned i = 0; i < kStages; ++i) {
        filled(Stage(i)).begin(1);
        emptied(Stage(i)).begin(kCopier);
      }
    }

    // Rows and tiles that do not exist hold arbitrary data; their results are not used.
    QUIRE_DEVICE void multiply(Totals& totals) const {
      // Tiles are in the stage as in memory: gates before factors.
      const bool gates = a.finish == Finish::kGate;
      const std::uint32_t slot = gates ? tile_of_pair() * kPairs + at.pair : at.pair * kPairTiles + tile_of_pair();
      const std::uint32_t whole = at.num_steps / kSliceSteps;
      QUIRE_ROLLED for (std::uint32_t slice = 0; slice < whole; ++slice) {
        Product sums[1][kRowTiles] = {};
        add_slice(slice * kSliceSteps, slot, sums[0]);
        totals.end_slice(slice, sums);
      }
      if (whole == at.num_slices) return;
      Product sums[1][kRowTiles] = {};
      QUIRE_ROLLED for (std::uint32_t i = whole * kSliceSteps; i < at.num_steps; ++i) {
        filled(Stage(i)).wait(Stage(i).parity);
        add_step(Stage(i), slot, sums[0]);
        leave(Stage(i));
      }
      totals.end_slice(whole, sums);
    }

   private:
    using Sums = typename Products::Sums;
    static constexpr unsigned kParts = kStepInputs / kTileInputs;  // of a step
    // Parts whose weights are loaded while as many before them are multiplied: half a step if the sums take the
    // registers.
    static constexpr unsigned kAtOnce = kRowsOfGroup == kWarpgroupRows ? 2 : kParts;
    static constexpr unsigned kOfStep = kParts / kAtOnce;
    static constexpr unsigned kOfSlice = kSliceSteps * kOfStep;
    // A lane's weights of kAtOnce parts, in bf16.
    struct Fragments {
      std::uint32_t words[kAtOnce][4];
    };
    QUIRE_DEVICE Fragments fragments(Stage from, std::uint32_t slot, unsigned which) const {
      const auto step = Form::Step::load(stage(from) + slot * kTileBytes, at.lane, FromShared());
      Fragments out;
      QUIRE_UNROLLED for (unsigned i = 0; i < kAtOnce; ++i) {
        Form::widen(step, which * kAtOnce + i, out.words[i]);
        make_here(out.words[i]);
      }
      return out;
    }
    QUIRE_DEVICE void add(Stage from, unsigned which, const Fragments& weights, Products& products, Sums& sums) const {
      const std::byte* rows = rows_of(from) + group_of_rows() * kRowTiles * kRowTileBytes;
      QUIRE_UNROLLED for (unsigned i = 0; i < kAtOnce; ++i) {
        const std::uint32_t address = shared_address(rows) + (which * kAtOnce + i) * 2 * kToNextInputs;
        products.add(sums, weights.words[i], RowsInShared{address, kToNextInputs, kToNextRows}.descriptor());
      }
    }

    // Adds the steps of a slice. No branch may stand between products in flight: the compiler would wait for each of
    // them.
    QUIRE_DEVICE void add_slice(std::uint32_t begin, std::uint32_t slot, Sums& sums) const {
      Products products;
      Fragments weights[2];
      filled(Stage(begin)).wait(Stage(begin).parity);
      weights[0] = fragments(Stage(begin), slot, 0);
      products.begin(sums);
      QUIRE_UNROLLED for (unsigned i = 0; i < kOfSlice; ++i) {
        if (i > 0) products.go_on();
        add(Stage(begin + i / kOfStep), i % kOfStep, weights[i % 2], products, sums);
        products.end_group();
        if (i + 1 == kOfSlice) break;
        const Stage next(begin + (i + 1) / kOfStep);
        if ((i + 1) % kOfStep == 0) filled(next).wait(next.parity);
        products.template wait<1>();  // for the products whose weights are overwritten next
        weights[(i + 1) % 2] = fragments(next, slot, (i + 1) % kOfStep);
        if (i % kOfStep == 0 && i > 0) leave(Stage(begin + i / kOfStep - 1));
      }
      products.finish(sums);
      if constexpr (kOfStep == 1) leave(Stage(begin + kSliceSteps - 2));
      leave(Stage(begin + kSliceSteps - 1));
    }

    // Adds one step, waiting for its products one by one.
    QUIRE_DEVICE void add_step(Stage from, std::uint32_t slot, Sums& sums) const {
      QUIRE_UNROLLED for (unsigned which = 0; which < kOfStep; ++which) {
        const Fragments weights = fragments(from, slot, which);
        Products products;
        products.begin(sums);
        add(from, which, weights, products, sums);
        products.finish(sums);
      }
    }
    QUIRE_DEVICE void leave(Stage from) const {
      if (at.lane == 0) emptied(from).arrive();
    }
    QUIRE_DEVICE PhaseBarrier* barriers() const {
      return reinterpret_cast<PhaseBarrier*>(shared + kStages * kStageBytes);
    }
  };

  // A lane of the copying warp. Adjacent tiles of weights are one piece: all of the block's, or its gates and its
  // factors, each of which may continue in the next group of tiles. Every piece has a lane, and the rows have one; its
  // source moves by a fixed distance from step to step. Lane 0 announces the bytes of a whole step.
  struct Copier {
    const Call& call;
    const unsigned lane;
    const std::byte* from = nullptr;  // null: this lane copies nothing
    std::uint32_t in_stage = 0;
    std::uint32_t bytes = 0;
    std::uint32_t to_next = 0;
    std::uint32_t announced = 0;

    static constexpr unsigned kPieces = 4;
    static constexpr unsigned kRowsLane = kPieces;

    QUIRE_DEVICE explicit Copier(const Call& of) : call(of), lane(thread() % kWarp) {
      const LinearArgs& a = call.a;
      announced = call.row_tiles * kRowTileBytes;
      QUIRE_ROLLED for (unsigned piece = 0; piece < kPieces; ++piece) {
        const bool gates = a.finish == Finish::kGate;
        const std::uint32_t end = gates ? call.at.num_tiles / 2 : call.at.num_tiles;
        const std::uint32_t most = gates ? kPairs : kTiles;
        const std::uint32_t run = piece / 2;
        if (run == 1 && !gates) break;
        const std::uint32_t before = call.at.group * most;  // of gates, or of all tiles
        const std::uint32_t left = end > before ? end - before : 0;
        const std::uint32_t count = left < most ? left : most;
        const std::uint32_t first = before + run * end;
        const std::uint32_t here = kGroupTiles - first % kGroupTiles;
        const std::uint32_t in_first = count < here ? count : here;
        const std::uint32_t tiles = piece % 2 == 0 ? in_first : count - in_first;
        announced += tiles * kTileBytes;
        if (piece != lane || tiles == 0) continue;
        const std::uint32_t tile = piece % 2 == 0 ? first : first + in_first;
        from = static_cast<const std::byte*>(a.w.numbers) + step_at(kTileBytes, a.w.n, a.w.k, tile, 0);
        in_stage = (run * kPairs + tile - first) * kTileBytes;
        bytes = tiles * kTileBytes;
        to_next = tiles_of_group(a.w.n, tile) * kTileBytes;
      }
      if (lane == kRowsLane) {
        from = a.x + place_in_row_blocks(a.w.k, call.first_of_block(), 0) * 2;
        in_stage = kTiles * kTileBytes;
        bytes = call.row_tiles * kRowTileBytes;
        to_next = kRowBlock / kTileRows * kRowTileBytes;
      }
    }
    // Starts the copies of the first steps' weights before the dependent launch wait: no kernel writes them.
    QUIRE_DEVICE void begin() const {
      QUIRE_ROLLED for (std::uint32_t i = 0; i < call.at.num_steps && i < kStages; ++i) {
        announce(i);
        if (lane != kRowsLane) fetch(i);
      }
    }
    QUIRE_DEVICE void fetch_all() const {
      if (lane == kRowsLane) {
        QUIRE_ROLLED for (std::uint32_t i = 0; i < call.at.num_steps && i < kStages; ++i) fetch(i);
      }
      QUIRE_ROLLED for (std::uint32_t i = kStages; i < call.at.num_steps; ++i) {
        call.emptied(Stage(i)).wait(Stage(i).parity_before());
        announce(i);
        fetch(i);
      }
    }

   private:
    QUIRE_DEVICE void announce(std::uint32_t i) const {
      if (lane == 0) call.filled(Stage(i)).arrive_and_announce(announced);
      sync_warp();
    }
    QUIRE_DEVICE void fetch(std::uint32_t i) const {
      if (from == nullptr) return;
      const Stage to(i);
      copy_in_bulk(call.stage(to) + in_stage, from + std::size_t{i} * to_next, bytes, call.filled(to));
    }
  };
};

}  // namespace quire::gpu
