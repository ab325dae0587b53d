// out[t, n] = x[t, :] · w[n, :] + bias[n], in two ways.
//   LinearDot    f32, f16, int8: one accumulator an output, fma over k ascending, as on the CPU and with its bits
//   LinearTiles  bf16: rows rounded to bf16 (RoundRows), tensor cores. K in slices of 512 inputs, each a sum of its own, tile by
//                tile ascending; the slices of an output are added in order. Which rows share a block changes nothing.
// Shape   x [T, K], out [T, N].
// Source  a fixed order for every number of rows: Thinking Machines 2025 (batch-invariant kernels); the rest ours.
#pragma once

#include "gpu/device/matrix.h"
#include "gpu/device/numbers.h"

namespace quire::gpu {

struct LinearDot {
  struct Args {
    const float* x = nullptr;
    std::uint32_t num_rows = 0;
    WeightView w;
    float* out = nullptr;
  };
  static constexpr unsigned kThreads = 128;  // an output each
  static constexpr std::uint32_t kRows = 8;  // of a block
  static constexpr std::uint32_t kInputs = 128;
  static constexpr std::size_t kSharedBytes = kRows * kInputs * sizeof(float);

  // grid.x: outputs, grid.y: rows.
  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    auto* x = reinterpret_cast<float*>(shared);  // [kRows, kInputs]
    const std::uint32_t output = block().x * kThreads + thread();
    const std::uint32_t first_row = block().y * kRows;
    float sums[kRows] = {};
    for (std::uint32_t k = 0; k < a.w.k; k += kInputs) {
      for (std::uint32_t i = thread(); i < kRows * kInputs; i += kThreads) {
        const std::uint32_t row = first_row + i / kInputs;
        const std::uint32_t input = k + i % kInputs;
        x[i] = row < a.num_rows && input < a.w.k ? a.x[std::size_t{row} * a.w.k + input] : 0.0f;
      }
      sync_block();
      const std::uint32_t end = a.w.k - k < kInputs ? a.w.k - k : kInputs;
      if (output < a.w.n) add(a.w, output, k, end, x, sums);
      sync_block();
    }
    if (output < a.w.n) store(a, output, first_row, sums);
  }

 private:
  QUIRE_DEVICE static void add(const WeightView& w, std::uint32_t output, std::uint32_t k, std::uint32_t end,
                               const float* x, float (&sums)[kRows]) {
    for (std::uint32_t i = 0; i < end; ++i) {
      const float weight = code_at(w, place_of_weight(w.type, w.n, w.k, output, k + i));
      for (std::uint32_t r = 0; r < kRows; ++r) sums[r] = fma(x[r * kInputs + i], weight, sums[r]);
    }
  }
  QUIRE_DEVICE static void store(const Args& a, std::uint32_t output, std::uint32_t first_row,
                                 const float (&sums)[kRows]) {
    for (std::uint32_t r = 0; r < kRows && first_row + r < a.num_rows; ++r) {
      float y = a.w.scales == nullptr ? sums[r] : sums[r] * a.w.scales[output];
      if (a.w.bias != nullptr) y = y + a.w.bias[output];
      a.out[std::size_t{first_row + r} * a.w.n + output] = y;
    }
  }
};

struct LinearTiles {
  struct Args {
    const std::uint16_t* x = nullptr;  // [T up to a multiple of kRows, K'], K' up to a multiple of 16
    std::uint32_t num_rows = 0;
    WeightView w;
    float* out = nullptr;
  };
  static constexpr unsigned kThreads = 256;
  static constexpr unsigned kWarps = kThreads / kWarp;
  static constexpr std::uint32_t kRows = 32;  // of a block
  static constexpr std::uint32_t kRowTiles = kRows / kTileRows;
  static constexpr std::uint32_t kSliceTiles = 512 / kTileInputs;
  static constexpr std::size_t kSharedBytes = kWarps * kTileOutputs * kRows * sizeof(float);

  // grid.x: tiles of outputs, grid.y: rows.
  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    auto* sums = reinterpret_cast<float*>(shared);  // [kWarps][16 outputs][kRows]
    const unsigned warp = thread() / kWarp;
    const std::uint32_t num_tiles = round_up(a.w.k, kTileInputs) / kTileInputs;
    const std::uint32_t num_slices = (num_tiles + kSliceTiles - 1) / kSliceTiles;
    constexpr unsigned kOfThread = kTileOutputs * kRows / kThreads;
    float totals[kOfThread] = {};
    for (std::uint32_t slice = 0; slice < num_slices; slice += kWarps) {
      if (slice + warp < num_slices) add_slice(a, slice + warp, num_tiles, sums + warp * kTileOutputs * kRows);
      sync_block();
      const std::uint32_t count = num_slices - slice < kWarps ? num_slices - slice : kWarps;
      for (unsigned i = 0; i < kOfThread; ++i) {
        for (std::uint32_t s = 0; s < count; ++s) {
          totals[i] = totals[i] + sums[s * kTileOutputs * kRows + i * kThreads + thread()];
        }
      }
      sync_block();
    }
    for (unsigned i = 0; i < kOfThread; ++i) store(a, i * kThreads + thread(), totals[i]);
  }

 private:
  // All rows of the block times one slice of 16 outputs, by a warp.
  QUIRE_DEVICE static void add_slice(const Args& a, std::uint32_t slice, std::uint32_t num_tiles, float* out) {
    const unsigned lane = thread() % kWarp;
    const std::uint32_t first = slice * kSliceTiles;
    const std::uint32_t last = num_tiles - first < kSliceTiles ? num_tiles : first + kSliceTiles;
    const std::size_t width = std::size_t{num_tiles} * kTileInputs;
    const auto* tiles = static_cast<const Fragment*>(a.w.numbers) + std::size_t{block().x} * num_tiles * kWarp;
    const std::uint16_t* x = a.x + (std::size_t{block().y} * kRows + lane / 4) * width + lane % 4 * 2;
    Product sums[kRowTiles];
    QUIRE_ROLLED for (std::uint32_t tile = first; tile < last; ++tile) {
      const Fragment weights = tiles[std::size_t{tile} * kWarp + lane];
      for (std::uint32_t r = 0; r < kRowTiles; ++r) {
        const std::uint16_t* at = x + r * kTileRows * width + tile * kTileInputs;
        const std::uint32_t rows[2] = {word_at(at), word_at(at + 8)};
        add_product(sums[r], weights.words, rows);
      }
    }
    for (std::uint32_t r = 0; r < kRowTiles; ++r) {
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned output = lane / 4 + 8 * (i / 2);
        out[output * kRows + r * kTileRows + lane % 4 * 2 + i % 2] = sums[r].c[i];
      }
    }
  }
  struct alignas(16) Fragment {  // of a tile of weights, a lane's
    std::uint32_t words[4];
  };
  QUIRE_DEVICE static std::uint32_t word_at(const std::uint16_t* x) {
    return *reinterpret_cast<const std::uint32_t*>(x);
  }

  QUIRE_DEVICE static void store(const Args& a, unsigned place, float total) {
    const std::uint32_t output = block().x * kTileOutputs + place / kRows;
    const std::uint32_t row = block().y * kRows + place % kRows;
    if (output >= a.w.n || row >= a.num_rows) return;
    a.out[std::size_t{row} * a.w.n + output] = a.w.bias == nullptr ? total : total + a.w.bias[output];
  }
};

}  // namespace quire::gpu
