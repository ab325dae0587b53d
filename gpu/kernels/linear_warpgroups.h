// linear.h's product of bf16 weights and many rows by instructions that sm_90a alone has: four warps multiply at a time, copies come in
// bulk. Slices, chains and the order of sums are linear.h's, fragments of weights, too; what one instruction does inside is the
// hardware's, so that nobody uses this by default until its bits are proven to be those of the others (GpuOptions::warpgroups).
//   A block has two warpgroups with the same 128 rows: of each pair of tiles of outputs one has the first, the other the second. A warp
//   besides asks for copies, up to six steps of 64 inputs ahead. Weights go through registers, rows do not.
// Shape   x in blocks of rows (weight_layout.h): their steps are 16 KiB on end, of which as much is copied as there are rows.
// Launch  as linear_grid.h has it for LinearWide in bf16.
// Source  a warp for copies and steps in a ring: CUTLASS, FlashAttention-3 (Shah et al. 2024); the rest ours.
#pragma once

#include "gpu/device/warpgroup_matrix.h"
#include "gpu/kernels/linear_forms.h"
#include "gpu/kernels/linear_sums.h"

namespace quire::gpu {

struct LinearWarpgroups {
  using Args = LinearArgs;
  using Form = Bf16Form;
  static constexpr unsigned kRowTiles = kWarpgroupRows / kTileRows;
  static constexpr unsigned kPairs = kWarpgroup / kWarp;
  static constexpr unsigned kCopier = kPairTiles * kPairs;  // a warp
  static constexpr unsigned kThreads = (kCopier + 1) * kWarp;
  static constexpr bool kTakesItsTurn = true;
  static constexpr unsigned kStages = 6;
  static constexpr std::uint32_t kTileBytes = step_bytes(Form::kType);
  static constexpr std::uint32_t kTiles = kPairs * kPairTiles;
  static constexpr std::uint32_t kRowTileBytes = Form::Rows::kStepBytes;
  static constexpr std::size_t kStageBytes = kTiles * kTileBytes + kRowTiles * kRowTileBytes;
  static constexpr std::size_t kSharedBytes = kStages * (kStageBytes + 2 * sizeof(PhaseBarrier));
  static_assert(kWarpgroupRows == kRowBlock && many_rows(Form::kType).rows() == kRowBlock);
  static_assert(many_rows(Form::kType).pairs == kPairs);

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const Call call(a, shared);
    LinearTotals<Form, kRowTiles, 1> totals(a, call.at);
    if (thread() == 0) call.begin();
    sync_block();
    const bool copies = thread() == kCopier * kWarp;
    if (copies) {
      QUIRE_ROLLED for (std::uint32_t i = 0; i < call.num_steps && i < kStages; ++i) call.fetch_weights(i);
    }
    take_turn();
    if (copies) {
      call.fetch_all();
    } else if (call.warp != kCopier) {
      call.multiply(totals);
    }
    totals.finish_apart(call.tile_of_pair(), reinterpret_cast<float*>(shared));
  }

 private:
  using Stage = StageOf<kStages>;
  static constexpr std::uint32_t kToNextInputs = kTileRows * 16;
  static constexpr std::uint32_t kToNextRows = kRowTileBytes;

  static_assert(kWarpgroupRows * LinearTotals<Form, kRowTiles, 1>::kFactorStride * sizeof(float) <=
                kStages * kStageBytes);

  struct Call {
    const Args& a;
    std::byte* const shared;
    const unsigned warp;
    LinearPlace at;
    std::uint32_t num_steps;
    std::uint32_t row_tiles;  // that there are

    QUIRE_DEVICE Call(const Args& args, std::byte* memory)
        : a(args), shared(memory), warp(thread() / kWarp), at(args, kRowTiles, kPairs, 1) {
      at.first_row = block().x * kRowBlock;
      at.tiles[0] = warp == kCopier ? at.num_tiles : at.tile(a, at.group * kPairs + at.pair, tile_of_pair());
      num_steps = at.end_step - at.first_slice * kSliceSteps;
      const std::uint32_t left = pieces_of(a.num_rows - at.first_row, kTileRows);
      row_tiles = left < kRowTiles ? left : kRowTiles;
    }
    QUIRE_DEVICE unsigned tile_of_pair() const { return warp / kPairs; }
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

    // Announces the whole step.
    QUIRE_DEVICE void fetch_weights(std::uint32_t i) const {
      const Stage to(i);
      const std::uint32_t step = at.first_slice * kSliceSteps + i;
      const auto* numbers = static_cast<const std::byte*>(a.w.numbers);
      std::uint32_t tiles = 0;
      QUIRE_ROLLED for (std::uint32_t slot = 0; slot < kTiles; ++slot) tiles += tile(slot) < at.num_tiles ? 1 : 0;
      filled(to).arrive_and_announce(tiles * kTileBytes + row_tiles * kRowTileBytes);
      QUIRE_ROLLED for (std::uint32_t slot = 0; slot < kTiles; ++slot) {
        if (tile(slot) >= at.num_tiles) continue;
        copy_in_bulk(stage(to) + slot * kTileBytes, numbers + step_at(Form::kType, a.w.k, tile(slot), step), kTileBytes,
                     filled(to));
      }
    }
    QUIRE_DEVICE void fetch_rows(std::uint32_t i) const {
      const Stage to(i);
      const std::uint32_t step = at.first_slice * kSliceSteps + i;
      copy_in_bulk(rows_of(to), a.x + place_in_row_blocks(a.w.k, at.first_row, step * kStepInputs) * 2,
                   row_tiles * kRowTileBytes, filled(to));
    }
    QUIRE_DEVICE void fetch_all() const {
      for (std::uint32_t i = 0; i < num_steps; ++i) {
        if (i >= kStages) {
          emptied(Stage(i)).wait(Stage(i).parity_before());
          fetch_weights(i);
        }
        fetch_rows(i);
      }
    }

    QUIRE_DEVICE void multiply(LinearTotals<Form, kRowTiles, 1>& totals) const {
      std::uint32_t i = 0;
      QUIRE_ROLLED for (std::uint32_t slice = at.first_slice; slice < at.last_slice; ++slice) {
        Product sums[1][kRowTiles] = {};
        const std::uint32_t left = num_steps - i;
        const std::uint32_t end = i + (left < kSliceSteps ? left : kSliceSteps);
        QUIRE_ROLLED for (; i < end; ++i) add_step(Stage(i), sums[0]);
        totals.end_slice(slice, sums);
      }
    }
    // Of rows and tiles that are not there, whatever lies there: nobody looks at what comes of it.
    QUIRE_DEVICE void add_step(Stage from, WarpgroupProducts<kWarpgroupRows>::Sums& sums) const {
      filled(from).wait(from.parity);
      const std::uint32_t slot = at.pair * kPairTiles + tile_of_pair();
      const PairStep weights = PairStep::load(stage(from) + slot * kTileBytes, at.lane, FromShared());
      WarpgroupProducts<kWarpgroupRows> products;
      products.begin(sums);
      QUIRE_UNROLLED for (unsigned part = 0; part < kStepInputs / kTileInputs; ++part) {
        const std::uint32_t address = shared_address(rows_of(from)) + part * 2 * kToNextInputs;
        products.add(sums, weights.parts[part].words, RowsInShared{address, kToNextInputs, kToNextRows}.descriptor());
      }
      products.finish(sums);
      if (at.lane == 0) emptied(from).arrive();
    }

   private:
    QUIRE_DEVICE PhaseBarrier* barriers() const {
      return reinterpret_cast<PhaseBarrier*>(shared + kStages * kStageBytes);
    }
    QUIRE_DEVICE std::uint32_t tile(std::uint32_t slot) const {
      return at.tile(a, at.group * kPairs + slot / kPairTiles, slot % kPairTiles);
    }
  };
};

}  // namespace quire::gpu
