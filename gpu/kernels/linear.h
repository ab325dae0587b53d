// Linear layers by the tensor cores: y[t, n] = x[t, :] · w[n, :] + bias[n], then out = y, or out += y · scale, or, if
// the lower half of the outputs are gates and the upper half their factors, out[t, f] = act(y[t, f]) · y[t, F + f].
//   LinearSplit       (linear_split.h) few rows, or few outputs: the warps of a block take slices of the inputs of one
//                     or two tiles
//   LinearWide        more rows: weights and rows go through shared memory, three steps in flight
//   LinearWarpgroups  (linear_warpgroups.h) more rows on sm_90a, by weights that are multiplied in bf16: bf16, w16a16,
//                     int8, fp8, int4
// Order   K is cut into slices of 256 inputs. A slice's sum begins with +0 (linear_forms.h). An output's slices are
//         added in order, beginning with +0: total = total + sum, or in w8a8 and w4a8 fma(sum, the row's scale of the
//         slice, total). Then the output's scale, the bias and the finish, each rounded. A row's bits therefore do not
//         depend on other rows, on their number, on the kernel or on the blocks; w8a8 and w4a8 have the CPU's
//         (core/backend/step_ops.h).
// Shape   x: rows as in weight_layout.h; out [T, N], or with gates [T, N / 2] (N / 2 a multiple of 16).
// Launch  linear_grid.h.
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
  static constexpr unsigned kRowTiles = many_rows(Form::kFormat).row_tiles;
  static constexpr unsigned kPairs = many_rows(Form::kFormat).pairs;
  static constexpr unsigned kRowWarps = many_rows(Form::kFormat).row_warps;
  static constexpr unsigned kThreads = many_rows(Form::kFormat).warps() * kWarp;
  static constexpr unsigned kStages = 3;
  static constexpr std::uint32_t kTileBytes = step_bytes(Form::kFormat);
  static constexpr std::uint32_t kTiles = kPairs * kPairTiles;
  static constexpr std::uint32_t kBlockRowTiles = kRowTiles * kRowWarps;
  static constexpr std::size_t kStageBytes = kTiles * kTileBytes + kBlockRowTiles * Rows::kStepBytes;
  static constexpr std::size_t kSharedBytes = kStages * kStageBytes;
  // Left to itself, the compiler of some architectures keeps more blocks of these than registers allow.
  static constexpr unsigned kMinBlocks = Form::kFormat == backend::Format::kW8A8 || Form::kFormat.is_blocks() ? 1 : 0;
  static constexpr unsigned kMinBlocksBeforeSm90 = in_integers(Form::kFormat) ? 1 : 0;
  static constexpr bool kWaitsForPreviousKernel = true;

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const LinearPlace at(a, kRowTiles, kPairs, kRowWarps);
    LinearTotals<Form, kRowTiles> totals(a, at);
    Copies copies;
    QUIRE_UNROLLED for (unsigned i = 0; i + 1 < kStages; ++i) {
      fetch_weights(a, at, i, shared + i * kStageBytes, copies);
    }
    wait_for_previous_kernel();
    QUIRE_UNROLLED for (unsigned i = 0; i + 1 < kStages; ++i) {
      fetch_rows(a, at, i, shared + i * kStageBytes, copies);
      copies.end_group();  // the first group has the weights of both steps
    }
    unsigned stage = 0;
    QUIRE_ROLLED for (std::uint32_t slice = 0; slice < at.num_slices; ++slice) {
      typename Form::Sum sums[kPairTiles][kRowTiles] = {};
      const std::uint32_t end = slice + 1 < at.num_slices ? (slice + 1) * kSliceSteps : at.num_steps;
      QUIRE_ROLLED for (std::uint32_t step = slice * kSliceSteps; step < end; ++step) {
        copies.template wait<kStages - 2>();
        // The step has arrived for all threads, and none of them still reads the step before, whose stage is refilled
        // next.
        sync_block();
        const unsigned free = stage == 0 ? kStages - 1 : stage - 1;
        fetch_weights(a, at, step + kStages - 1, shared + free * kStageBytes, copies);
        fetch_rows(a, at, step + kStages - 1, shared + free * kStageBytes, copies);
        copies.end_group();  // even if nothing was left to fetch: wait() counts groups
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

  // Starts copies of a step of the block's weights, or of its rows.
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
          numbers + step_at(kTileBytes, a.w.n, a.w.k, tile, step) + i % kTilePieces * kPiece);
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

  // Rows and tiles that do not exist hold arbitrary data; their results are not used.
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
