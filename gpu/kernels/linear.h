// y[t, n] = x[t, :] · w[n, :] + bias[n] by the tensor cores, and what becomes of it: out = y, out += y, or, the lower half of the
// outputs being gates and the upper half their other factors, out[t, f] = silu(y[t, f]) · y[t, F + f].
//   LinearSplit       (linear_split.h) few rows, or few outputs: the warps of a block have slices of the inputs of one
//                     or two tiles
//   LinearWide        more rows: weights and rows come by way of what the block shares, three steps under way
//   LinearWarpgroups  (linear_warpgroups.h) likewise on sm_90a, of bf16 weights
// Order   K is cut into slices of 256 inputs. A slice's sum begins with +0 (linear_forms.h). An output's slices are added in order,
//         beginning with +0: total = total + sum, or where rows are whole numbers fma(sum, the row's scale of the slice, total).
//         Then the output's scale, the bias, and what becomes of it, each rounded. So a row's bits know nothing of other rows, of how
//         many there are, of kernels and blocks; w8a8 and w4a8 have the CPU's (core/backend/ops.h).
// Shape   x as rows of weight_layout.h; out [T, N], or [T, N / 2] where there are gates (N / 2 a multiple of 16).
// Launch  as linear_grid.h has it.
// Source  a fixed order for every number of rows: Thinking Machines 2025 (batch-invariant kernels); the rest ours.
#pragma once

#include "gpu/device/copies.h"
#include "gpu/kernels/linear_forms.h"
#include "gpu/kernels/linear_sums.h"

namespace quire::gpu {

template <typename Form>
struct LinearWide {
  using Args = LinearArgs;
  using Rows = typename Form::Rows;
  using Step = typename Form::Step;
  static constexpr unsigned kRowTiles = many_rows(Form::kType).row_tiles;
  static constexpr unsigned kPairs = many_rows(Form::kType).pairs;
  static constexpr unsigned kRowWarps = many_rows(Form::kType).row_warps;
  static constexpr unsigned kThreads = many_rows(Form::kType).warps() * kWarp;
  static constexpr unsigned kStages = 3;
  static constexpr std::uint32_t kTileBytes = step_bytes(Form::kType);
  static constexpr std::uint32_t kTiles = kPairs * kPairTiles;
  static constexpr std::uint32_t kBlockRowTiles = kRowTiles * kRowWarps;
  static constexpr std::size_t kStageBytes = kTiles * kTileBytes + kBlockRowTiles * Rows::kStepBytes;
  static constexpr std::size_t kSharedBytes = kStages * kStageBytes;
  // Left alone, the compiler of one architecture keeps more blocks of these than registers last for.
  static constexpr unsigned kMinBlocks = Form::kType == backend::WeightType::kW8A8 ? 1 : 0;
  static constexpr bool kTakesItsTurn = true;

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const LinearPlace at(a, kRowTiles, kPairs, kRowWarps);
    LinearTotals<Form, kRowTiles> totals(a, at);
    Copies copies;
    QUIRE_UNROLLED for (unsigned i = 0; i + 1 < kStages; ++i) {
      fetch_weights(a, at, i, shared + i * kStageBytes, copies);
    }
    take_turn();
    QUIRE_UNROLLED for (unsigned i = 0; i + 1 < kStages; ++i) {
      fetch_rows(a, at, i, shared + i * kStageBytes, copies);
      copies.end_group();  // the first one has the weights of both
    }
    unsigned stage = 0;
    QUIRE_ROLLED for (std::uint32_t slice = 0; slice < at.num_slices; ++slice) {
      typename Form::Sum sums[kPairTiles][kRowTiles] = {};
      const std::uint32_t end = slice + 1 < at.num_slices ? (slice + 1) * kSliceSteps : at.num_steps;
      QUIRE_ROLLED for (std::uint32_t step = slice * kSliceSteps; step < end; ++step) {
        copies.template wait<kStages - 2>();
        sync_block();  // the step is there for all, and nobody is still at the one before, whose place is the next one's
        const unsigned free = stage == 0 ? kStages - 1 : stage - 1;
        fetch_weights(a, at, step + kStages - 1, shared + free * kStageBytes, copies);
        fetch_rows(a, at, step + kStages - 1, shared + free * kStageBytes, copies);
        copies.end_group();  // even where nothing is left to fetch
        if (at.has_tiles() && at.first_row < a.num_rows) multiply(at, shared + stage * kStageBytes, sums);
        stage = stage + 1 == kStages ? 0 : stage + 1;
      }
      totals.end_slice(slice, sums);
    }
    totals.finish();
  }

 private:
  static constexpr unsigned kPiece = sizeof(Words4);
  QUIRE_DEVICE static void add(Copies& copies, std::byte* shared, const std::byte* memory) {
    copies.add(reinterpret_cast<Words4*>(shared), reinterpret_cast<const Words4*>(memory));
  }

  // A step of the block's weights, and of its rows.
  QUIRE_DEVICE static void fetch_weights(const Args& a, const LinearPlace& at, std::uint32_t step, std::byte* stage,
                                         Copies& copies) {
    if (step >= at.num_steps) return;
    const auto* numbers = static_cast<const std::byte*>(a.w.numbers);
    constexpr std::uint32_t kTilePieces = kTileBytes / kPiece;
    QUIRE_ROLLED for (std::uint32_t i = thread(); i < kTiles * kTilePieces; i += kThreads) {
      const std::uint32_t slot = i / kTilePieces;
      const std::uint32_t tile = tile_of_pair(a, at.group * kPairs + slot / kPairTiles, slot % kPairTiles);
      if (tile >= at.num_tiles) continue;
      add(copies, stage + i * kPiece,
          numbers + step_at(Form::kType, a.w.n, a.w.k, tile, step) + i % kTilePieces * kPiece);
    }
  }
  QUIRE_DEVICE static void fetch_rows(const Args& a, const LinearPlace& at, std::uint32_t step, std::byte* stage,
                                      Copies& copies) {
    if (step >= at.num_steps) return;
    constexpr std::uint32_t kRowPieces = Rows::kStepBytes / kPiece;
    const std::uint32_t first_tile = block().x * kBlockRowTiles;
    QUIRE_ROLLED for (std::uint32_t i = thread(); i < kBlockRowTiles * kRowPieces; i += kThreads) {
      const std::uint32_t row_tile = first_tile + i / kRowPieces;
      if (row_tile * kTileRows >= a.num_rows) continue;
      const std::byte* from = a.x + (std::size_t{row_tile} * at.num_steps + step) * Rows::kStepBytes;
      add(copies, stage + kTiles * kTileBytes + i * kPiece, from + i % kRowPieces * kPiece);
    }
  }

  // Of rows and tiles that are not there, whatever lies there: nobody looks at what comes of it.
  QUIRE_DEVICE static void multiply(const LinearPlace& at, const std::byte* stage,
                                    typename Form::Sum (&sums)[kPairTiles][kRowTiles]) {
    Step weights[kPairTiles];
    QUIRE_UNROLLED for (unsigned t = 0; t < kPairTiles; ++t) {
      weights[t] = Step::load(stage + (at.pair * kPairTiles + t) * kTileBytes, at.lane, FromShared());
    }
    const unsigned first = at.first_row / kTileRows % kBlockRowTiles;
    const std::byte* rows_at = stage + kTiles * kTileBytes + first * Rows::kStepBytes;
    QUIRE_UNROLLED for (unsigned half = 0; half < 2; ++half) {
      Rows rows[kRowTiles];
      QUIRE_UNROLLED for (unsigned r = 0; r < kRowTiles; ++r) {
        rows[r] = Rows::load(rows_at + r * Rows::kStepBytes, half, at.lane);
      }
      QUIRE_UNROLLED for (unsigned t = 0; t < kPairTiles; ++t) Form::add(weights[t], half, rows, sums[t]);
    }
  }
};

}  // namespace quire::gpu
