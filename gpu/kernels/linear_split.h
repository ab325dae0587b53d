// Product of linear.h for few rows, or few outputs: a block has one output tile or a pair of them, and its eight warps
// take slices of the inputs in turn. After each round of eight slices their sums meet in shared memory and are added
// there in order, so that nothing goes through global memory and no block waits for another.
//   Weights stream from memory to registers, several loads of a lane in flight, the first of them before the dependent
//   launch wait. Rows go through shared memory, a few steps ahead: each lane copies what it will read itself, so that
//   no barrier is needed.
// Launch  grid.x: row blocks, grid.y: output tiles, or pairs of them (linear_grid.h). With gates kTiles is 2.
// Source  ours.
#pragma once

#include "gpu/device/copies.h"
#include "gpu/kernels/linear_forms.h"
#include "gpu/kernels/linear_sums.h"

namespace quire::gpu {

template <typename Form, unsigned kRowTiles, unsigned kTiles>
struct LinearSplit {
  using Args = LinearArgs;
  using Rows = typename Form::Rows;
  using Step = typename Form::Step;
  static constexpr unsigned kWarps = 8;
  static constexpr unsigned kThreads = kWarps * kWarp;
  static constexpr std::uint32_t kTileBytes = step_bytes(Form::kFormat);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
  static constexpr unsigned kBlocksOfNarrow = 2;  // with three, Int8Form spills
#else
  static constexpr unsigned kBlocksOfNarrow = Form::kFormat.is_blocks() ? 2 : 3;  // with three, blocks spill
#endif
  // Blocks per multiprocessor. Steps of narrow types are short, and more blocks hide the start and end of each.
  static constexpr bool kIsNarrow = Form::kFormat != backend::Format::kBF16;
  static constexpr bool kIsLarge = kRowTiles > 2 || (Form::kFormat.is_blocks() && kRowTiles * kTiles > 2);
  static constexpr unsigned kMinBlocks = kIsLarge ? 1 : kRowTiles == 1 && kIsNarrow ? kBlocksOfNarrow : 2;
  static constexpr bool kWaitsForPreviousKernel = true;

 private:
  static constexpr unsigned kAhead = Form::template ahead<kRowTiles, kTiles>();  // steps of weights
  static constexpr unsigned kRowsAhead = kRowTiles <= 2 ? 4 : 2;                 // steps of rows
  static_assert(kSliceSteps % kAhead == 0 && kSliceSteps % kRowsAhead == 0);

  using Words = typename Rows::Words;
  static constexpr unsigned kNumbers = kTiles * kRowTiles * 4;  // per lane
  static constexpr unsigned kOfBlock = kNumbers * kWarp;
  static constexpr unsigned kOfThread = kOfBlock > kThreads ? kOfBlock / kThreads : 1;
  static constexpr unsigned kBuffers = kTiles * kRowTiles <= 4 ? 2 : 1;  // buffers of sums

  struct Work {
    Words rows[kWarps][kRowsAhead][kRowTiles][2][kWarp];
    float sums[kBuffers][kWarps][kOfBlock];
  };

 public:
  static constexpr std::size_t kSharedBytes = sizeof(Work);

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    run_rows(a, block().x, shared, [] { wait_for_previous_kernel(); });
  }
  // Of one block of rows. wait(): called once, before rows are read.
  template <typename Wait>
  QUIRE_DEVICE static void run_rows(const Args& a, std::uint32_t row_block, std::byte* shared, const Wait& wait) {
    Work& work = *reinterpret_cast<Work*>(shared);
    const Place at(a, row_block);
    Step ahead[kAhead][kTiles] = {};
    QUIRE_UNROLLED for (unsigned i = 0; i < kAhead; ++i) load(a, at, i, ahead[i]);
    wait();
    Copies copies;
    QUIRE_UNROLLED for (unsigned i = 0; i < kRowsAhead; ++i) fetch_rows(a, at, i, work, copies);
    float totals[kOfThread] = {};
    const std::uint32_t rounds = pieces_of(at.num_slices, kWarps);
    QUIRE_ROLLED for (std::uint32_t round = 0; round < rounds; ++round) {
      auto& sums_of = work.sums[kBuffers == 1 ? 0 : round % kBuffers];
      typename Form::Sum sums[kTiles][kRowTiles] = {};
      QUIRE_UNROLLED for (unsigned s = 0; s < kSliceSteps; ++s) {
        const std::uint32_t turn = round * kSliceSteps + s;
        copies.template wait<kRowsAhead - 1>();
        if (at.step(turn) < at.num_steps) {
          Step now[kTiles];
          QUIRE_UNROLLED for (unsigned t = 0; t < kTiles; ++t) now[t] = ahead[s % kAhead][t];
          load(a, at, turn + kAhead, ahead[s % kAhead]);
          QUIRE_UNROLLED for (unsigned half = 0; half < 2; ++half) {
            Rows rows[kRowTiles];
            QUIRE_UNROLLED for (unsigned r = 0; r < kRowTiles; ++r) {
              rows[r] = {work.rows[at.warp][s % kRowsAhead][r][half][at.lane]};
            }
            QUIRE_UNROLLED for (unsigned t = 0; t < kTiles; ++t) Form::add(now[t], half, rows, sums[t]);
          }
        }
        fetch_rows(a, at, turn + kRowsAhead, work, copies);
      }
      QUIRE_UNROLLED for (unsigned n = 0; n < kNumbers; ++n) {
        sums_of[at.warp][n * kWarp + at.lane] = static_cast<float>(sums[n / 4 / kRowTiles][n / 4 % kRowTiles].c[n % 4]);
      }
      sync_block();
      add_up(a, at, round * kWarps, sums_of, totals);
      if (kBuffers == 1) sync_block();
    }
    finish(a, at, reinterpret_cast<float*>(work.sums), totals);
  }

 private:
  struct Place {
    std::uint32_t num_slices;
    std::uint32_t num_steps;
    std::uint32_t num_tiles;
    std::uint32_t first_row;
    unsigned warp;
    unsigned lane;
    std::uint32_t tiles[kTiles];

    QUIRE_DEVICE Place(const Args& a, std::uint32_t row_block)
        : num_slices(gpu::num_slices(a.w.k)),
          num_steps(gpu::num_steps(a.w.k)),
          num_tiles(gpu::num_tiles(a.w.n)),
          first_row(row_block * kRowTiles * kTileRows),
          warp(thread() / kWarp),
          lane(thread() % kWarp) {
      for (unsigned t = 0; t < kTiles; ++t) tiles[t] = kTiles == 1 ? block().y : tile_of_pair(a, block().y, t);
    }
    // Index of a step of the warp's slices, in the order it takes them.
    QUIRE_DEVICE std::uint32_t step(std::uint32_t turn) const {
      return (turn / kSliceSteps * kWarps + warp) * kSliceSteps + turn % kSliceSteps;
    }
  };

  QUIRE_DEVICE static void load(const Args& a, const Place& at, std::uint32_t turn, Step (&out)[kTiles]) {
    const auto* numbers = static_cast<const std::byte*>(a.w.numbers);
    const std::uint32_t step = at.step(turn);
    QUIRE_UNROLLED for (unsigned t = 0; t < kTiles; ++t) {
      if (step < at.num_steps && at.tiles[t] < at.num_tiles) {
        out[t] = Step::load(numbers + step_at(kTileBytes, a.w.n, a.w.k, at.tiles[t], step), at.lane, FromMemory());
      }
    }
  }
  // Rows that do not exist hold arbitrary data; their results are not used.
  QUIRE_DEVICE static void fetch_rows(const Args& a, const Place& at, std::uint32_t turn, Work& work, Copies& copies) {
    const std::uint32_t step = at.step(turn);
    if (step < at.num_steps) {
      QUIRE_UNROLLED for (unsigned r = 0; r < kRowTiles; ++r) {
        if (at.first_row + r * kTileRows + at.lane / 4 < a.num_rows) {
          const std::size_t tile = at.first_row / kTileRows + r;
          const auto* words = reinterpret_cast<const Words*>(a.x + (tile * at.num_steps + step) * Rows::kStepBytes);
          QUIRE_UNROLLED for (unsigned half = 0; half < 2; ++half) {
            copies.add(&work.rows[at.warp][turn % kRowsAhead][r][half][at.lane], words + half * kWarp + at.lane);
          }
        }
      }
    }
    copies.end_group();  // even if nothing was left to fetch: wait() counts groups
  }

  // Number j of a thread: the lane, tile and element whose total it is.
  struct Number {
    unsigned lane;
    unsigned tile;
    unsigned row_tile;
    unsigned i;
    bool is_there;

    QUIRE_DEVICE explicit Number(unsigned j) : lane(thread() % kWarp), is_there(j * kThreads + thread() < kOfBlock) {
      const unsigned number = j * kWarps + thread() / kWarp;
      tile = number / (4 * kRowTiles);
      row_tile = number / 4 % kRowTiles;
      i = number % 4;
    }
  };
  QUIRE_DEVICE static std::uint32_t row_of(const Place& at, const Number& number) {
    return at.first_row + number.row_tile * kTileRows + row_in_tile(number.lane, number.i);
  }

  QUIRE_DEVICE static void add_up(const Args& a, const Place& at, std::uint32_t first_slice,
                                  const float (&sums)[kWarps][kOfBlock], float (&totals)[kOfThread]) {
    QUIRE_UNROLLED for (unsigned j = 0; j < kOfThread; ++j) {
      const Number number(j);
      if (!number.is_there) continue;
      float of_warps[kWarps];
      QUIRE_UNROLLED for (unsigned w = 0; w < kWarps; ++w) of_warps[w] = sums[w][j * kThreads + thread()];
      QUIRE_UNROLLED for (unsigned w = 0; w < kWarps; ++w) {
        if (first_slice + w < at.num_slices) {
          totals[j] = joined<Form>(a, totals[j], of_warps[w], first_slice + w, row_of(at, number));
        }
      }
    }
  }

  // `shared`: room for kOfBlock numbers.
  QUIRE_DEVICE static void finish(const Args& a, const Place& at, float* shared, const float (&totals)[kOfThread]) {
    const bool gates = kTiles == 2 && a.finish == Finish::kGate;
    if (gates) {
      sync_block();  // no thread still reads the old contents
      QUIRE_UNROLLED for (unsigned j = 0; j < kOfThread; ++j) {
        const Number number(j);
        if (number.is_there && number.tile == 1) shared[j * kThreads + thread()] = totals[j];
      }
      sync_block();
    }
    QUIRE_UNROLLED for (unsigned j = 0; j < kOfThread; ++j) {
      const Number number(j);
      const std::uint32_t row = row_of(at, number);
      if (!number.is_there || row >= a.num_rows) continue;
      // Not indexed by number.tile: the tiles are registers.
      const std::uint32_t tile = number.tile == 0 ? at.tiles[0] : at.tiles[kTiles - 1];
      const std::uint32_t output = tile * kTileOutputs + output_in_tile(number.lane, number.i);
      if (gates) {
        const std::uint32_t width = a.w.n / 2;
        if (number.tile == 1 || output >= width) continue;
        const float factor = finished<Form>(a, width + output, shared[j * kThreads + thread() + kOfBlock / 2]);
        output_at(a, row, output) = activated(a.activation, finished<Form>(a, output, totals[j])) * factor;
      } else if (output < a.w.n) {
        put_output(a, row, output, finished<Form>(a, output, totals[j]));
      }
    }
  }
};

}  // namespace quire::gpu
