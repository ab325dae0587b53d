// Linear layers of f32 and f16 weights, and of blocks times f32: out[t, n] = x[t, :] · w[n, :] + bias[n], one
// accumulator per output, fma over k ascending, with the bits of the CPU.
// Shape   x [T, K], out [T, N].
// Launch  grid.x: outputs, kThreads a block; grid.y: rows, kRows a block.
// Source  ours.
#pragma once

#include "gpu/device/numbers.h"

namespace quire::gpu {

// kAhead: weights that are loaded before the first is used.
struct PlainNumbers {
  static constexpr unsigned kAhead = 16;
  QUIRE_DEVICE static float at(const WeightView& w, std::uint32_t output, std::uint32_t input) {
    return plain_number_at(w, place_in_columns(w.n, output, input));
  }
};
struct BlockNumbers {
  static constexpr unsigned kAhead = 2;  // each is some 30 instructions, which more of them would spill
  QUIRE_DEVICE static float at(const WeightView& w, std::uint32_t output, std::uint32_t input) {
    return block_number_at(w, output, input);
  }
};

template <typename Numbers>
struct LinearDotOf {
  struct Args {
    const float* x = nullptr;
    std::uint32_t num_rows = 0;
    WeightView w;
    float* out = nullptr;
    std::uint32_t out_width = 0;  // of a row of out
  };
  static constexpr unsigned kThreads = 128;  // one output each
  static constexpr std::uint32_t kRows = 8;  // per block
  static constexpr std::uint32_t kInputs = 128;
  static constexpr unsigned kAhead = Numbers::kAhead;
  static constexpr std::size_t kSharedBytes = kRows * kInputs * sizeof(float);

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) { run_rows(a, block().y * kRows, shared); }
  QUIRE_DEVICE static void run_rows(const Args& a, std::uint32_t first_row, std::byte* shared) {
    auto* x = reinterpret_cast<float*>(shared);  // [kRows, kInputs]
    const std::uint32_t output = block().x * kThreads + thread();
    float sums[kRows] = {};
    for (std::uint32_t k = 0; k < a.w.k; k += kInputs) {
      for (std::uint32_t i = thread(); i < kRows * kInputs; i += kThreads) {
        const std::uint32_t row = first_row + i / kInputs;
        const std::uint32_t input = k + i % kInputs;
        x[i] = row < a.num_rows && input < a.w.k ? a.x[std::size_t{row} * a.w.k + column(a.w, input)] : 0.0f;
      }
      sync_block();
      const std::uint32_t end = a.w.k - k < kInputs ? a.w.k - k : kInputs;
      if (output < a.w.n) add(a.w, output, k, end, x, sums);
      sync_block();
    }
    if (output < a.w.n) store(a, output, first_row, sums);
  }

 private:
  QUIRE_DEVICE static std::uint32_t column(const WeightView& w, std::uint32_t input) {
    return w.columns == nullptr ? input : w.columns[input];
  }
  QUIRE_DEVICE static void add(const WeightView& w, std::uint32_t output, std::uint32_t k, std::uint32_t end,
                               const float* x, float (&sums)[kRows]) {
    std::uint32_t i = 0;
    QUIRE_ROLLED for (; i + kAhead <= end; i += kAhead) {
      float weights[kAhead];
      QUIRE_UNROLLED for (unsigned n = 0; n < kAhead; ++n) weights[n] = Numbers::at(w, output, k + i + n);
      QUIRE_UNROLLED for (unsigned n = 0; n < kAhead; ++n) add_one(x + i + n, weights[n], sums);
    }
    QUIRE_ROLLED for (; i < end; ++i) add_one(x + i, Numbers::at(w, output, k + i), sums);
  }
  QUIRE_DEVICE static void add_one(const float* x, float weight, float (&sums)[kRows]) {
    QUIRE_UNROLLED for (std::uint32_t r = 0; r < kRows; ++r) sums[r] = fma(x[r * kInputs], weight, sums[r]);
  }
  QUIRE_DEVICE static void store(const Args& a, std::uint32_t output, std::uint32_t first_row,
                                 const float (&sums)[kRows]) {
    for (std::uint32_t r = 0; r < kRows && first_row + r < a.num_rows; ++r) {
      const float y = a.w.scales == nullptr ? sums[r] : sums[r] * a.w.scales[output];
      a.out[std::size_t{first_row + r} * a.out_width + output] = a.w.bias == nullptr ? y : y + a.w.bias[output];
    }
  }
};
using LinearDot = LinearDotOf<PlainNumbers>;
using LinearDotOfBlocks = LinearDotOf<BlockNumbers>;

}  // namespace quire::gpu
