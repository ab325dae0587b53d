// Linear layers of f32 and f16 weights, and of blocks times f32: out[t, n] = x[t, :] · w[n, :] + bias[n], one
// accumulator per output, fma over k ascending, with the bits of the CPU.
// Shape   x [T, K], out [T, N].
// Launch  grid.x: outputs, kThreads a block; grid.y: rows, kRows a block.
// Source  ours.
#pragma once

#include "gpu/kernels/routes.h"

namespace quire::gpu {

// kAhead: weights that are loaded before the first is used.
struct PlainNumbers {
  static constexpr unsigned kAhead = 16;
  QUIRE_DEVICE static float at(const WeightView& w, const void* numbers, std::uint32_t output, std::uint32_t input) {
    return plain_number_at(w, numbers, place_in_columns(w.n, output, input));
  }
};
struct BlockNumbers {
  static constexpr unsigned kAhead = 2;  // each is some 30 instructions, which more of them would spill
  QUIRE_DEVICE static float at(const WeightView& w, const void* numbers, std::uint32_t output, std::uint32_t input) {
    return block_number_at(w, numbers, output, input);
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

  // Up to kRows rows, which a block multiplies by a weight of the shape of a.w; that shape stays among the arguments.
  struct Part {
    ExpertWeight weight;
    const float* x = nullptr;
    float* out = nullptr;
    std::uint32_t num_rows = 0;
  };

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const std::uint32_t first_row = block().y * kRows;
    const Part part{{a.w.numbers, a.w.scales, a.w.bias, a.w.columns},
                    a.x + std::size_t{first_row} * a.w.k,
                    a.out + std::size_t{first_row} * a.out_width,
                    a.num_rows - first_row};
    run_part(a, part, shared);
  }
  QUIRE_DEVICE static void run_part(const Args& a, const Part& part, std::byte* shared) {
    auto* x = reinterpret_cast<float*>(shared);  // [kRows, kInputs]
    const std::uint32_t output = block().x * kThreads + thread();
    float sums[kRows] = {};
    for (std::uint32_t k = 0; k < a.w.k; k += kInputs) {
      for (std::uint32_t i = thread(); i < kRows * kInputs; i += kThreads) {
        const std::uint32_t row = i / kInputs;
        const std::uint32_t input = k + i % kInputs;
        const bool is_there = row < part.num_rows && input < a.w.k;
        x[i] = is_there ? part.x[std::size_t{row} * a.w.k + column(part, input)] : 0.0f;
      }
      sync_block();
      const std::uint32_t end = a.w.k - k < kInputs ? a.w.k - k : kInputs;
      if (output < a.w.n) add(a.w, part.weight.numbers, output, k, end, x, sums);
      sync_block();
    }
    if (output < a.w.n) store(a, part, output, sums);
  }

 private:
  QUIRE_DEVICE static std::uint32_t column(const Part& part, std::uint32_t input) {
    return part.weight.columns == nullptr ? input : part.weight.columns[input];
  }
  QUIRE_DEVICE static void add(const WeightView& w, const void* numbers, std::uint32_t output, std::uint32_t k,
                               std::uint32_t end, const float* x, float (&sums)[kRows]) {
    std::uint32_t i = 0;
    QUIRE_ROLLED for (; i + kAhead <= end; i += kAhead) {
      float weights[kAhead];
      QUIRE_UNROLLED for (unsigned n = 0; n < kAhead; ++n) weights[n] = Numbers::at(w, numbers, output, k + i + n);
      QUIRE_UNROLLED for (unsigned n = 0; n < kAhead; ++n) add_one(x + i + n, weights[n], sums);
    }
    QUIRE_ROLLED for (; i < end; ++i) add_one(x + i, Numbers::at(w, numbers, output, k + i), sums);
  }
  QUIRE_DEVICE static void add_one(const float* x, float weight, float (&sums)[kRows]) {
    QUIRE_UNROLLED for (std::uint32_t r = 0; r < kRows; ++r) sums[r] = fma(x[r * kInputs], weight, sums[r]);
  }
  QUIRE_DEVICE static void store(const Args& a, const Part& part, std::uint32_t output, const float (&sums)[kRows]) {
    const ExpertWeight& w = part.weight;
    QUIRE_UNROLLED for (std::uint32_t r = 0; r < kRows; ++r) {
      if (r >= part.num_rows) break;
      const float y = w.scales == nullptr ? sums[r] : sums[r] * w.scales[output];
      part.out[std::size_t{r} * a.out_width + output] = w.bias == nullptr ? y : y + w.bias[output];
    }
  }
};
using LinearDot = LinearDotOf<PlainNumbers>;
using LinearDotOfBlocks = LinearDotOf<BlockNumbers>;

}  // namespace quire::gpu
