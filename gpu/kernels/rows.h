// Kernels over rows: embedding, norm, activation, sum and copies. Equations: core/backend/ops.h, bit
// for bit as on the CPU.
// Shape   rows [rows][width] of f32; a block a row (grid.x), or so many columns of one (grid.y).
// Source  ours.
#pragma once

#include "core/sample/math.h"
#include "gpu/device/layout.h"
#include "gpu/device/numbers.h"
#include "gpu/device/simt.h"

namespace quire::gpu {

inline constexpr unsigned kSumLanes = 16;

// Lanes l and l + 8, then l and l + 4, l + 2, l + 1: what all of the warp's first 16 lanes hold afterwards.
QUIRE_DEVICE float sum_of_lanes(float lane) {
  for (unsigned half = kSumLanes / 2; half > 0; half /= 2) lane = lane + shuffle_xor(lane, half);
  return lane;
}

inline constexpr std::uint32_t kSquaresAtOnce = 4096;  // a multiple of kSquaresAhead * kSumLanes
inline constexpr std::uint32_t kSquaresAhead = 16;
inline constexpr std::size_t kNormShared = (kSquaresAtOnce + 1) * sizeof(float);

// 1 / sqrt(sum16(x²) / width + eps). The block fetches the row, a warp adds, with numbers on their way while others
// are added: one at a time, each would be waited for. What fills up the last numbers is 0, whose square added to what
// is there changes nothing.
template <unsigned kThreads>
QUIRE_DEVICE float norm_factor(const float* x, std::uint32_t width, float eps, float* shared) {
  constexpr unsigned kFetched = 16;  // by a thread, at once
  float squares = 0.0f;
  for (std::uint32_t first = 0; first < width; first += kSquaresAtOnce) {
    const std::uint32_t count = width - first < kSquaresAtOnce ? width - first : kSquaresAtOnce;
    constexpr std::uint32_t kUnit = kSquaresAhead * kSumLanes;
    const std::uint32_t filled = (count + kUnit - 1) / kUnit * kUnit;
    QUIRE_ROLLED for (std::uint32_t i = thread(); i < filled; i += kFetched * kThreads) {
      float fetched[kFetched];
      QUIRE_UNROLLED for (unsigned n = 0; n < kFetched; ++n) {
        const std::uint32_t at = i + n * kThreads;
        fetched[n] = at < count ? x[first + at] : 0.0f;
      }
      QUIRE_UNROLLED for (unsigned n = 0; n < kFetched; ++n) {
        if (i + n * kThreads < filled) shared[i + n * kThreads] = fetched[n];
      }
    }
    sync_block();
    if (thread() < kWarp) {
      QUIRE_ROLLED for (std::uint32_t i = thread() % kSumLanes; i < filled; i += kUnit) {
        float ahead[kSquaresAhead];
        QUIRE_UNROLLED for (unsigned n = 0; n < kSquaresAhead; ++n) ahead[n] = shared[i + n * kSumLanes];
        QUIRE_UNROLLED for (unsigned n = 0; n < kSquaresAhead; ++n) squares = fma(ahead[n], ahead[n], squares);
      }
    }
    sync_block();
  }
  if (thread() < kWarp) {
    const float mean = quotient(sum_of_lanes(squares), static_cast<float>(width));
    if (thread() == 0) shared[kSquaresAtOnce] = quotient(1.0f, root(mean + eps));
  }
  sync_block();
  return shared[kSquaresAtOnce];
}

struct Embed {
  struct Args {
    const std::int32_t* tokens =
        nullptr;                         // or fed_by(logits row): what that one said in the step before, -1: some token
    const std::int32_t* said = nullptr;  // by logits row
    WeightView table;
    float* out = nullptr;
    std::uint32_t first = 0;  // token that the table begins with; where it has a token not, -0 stands for its row
  };
  static constexpr unsigned kThreads = 128;
  static constexpr std::int32_t fed_by(std::uint32_t logits_row) { return -1 - static_cast<std::int32_t>(logits_row); }

  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::uint32_t row = block().x;
    std::int32_t id = a.tokens[row];
    if (id < 0) id = a.said[-1 - id];
    const std::uint32_t token = static_cast<std::uint32_t>(id < 0 ? 0 : id) - a.first;
    const std::uint32_t i = block().y * kThreads + thread();
    if (i >= a.table.k) return;
    a.out[std::size_t{row} * a.table.k + i] = token < a.table.n ? number_at(a.table, token, i) : -0.0f;
  }
};

// The same of a few numbers, by a warp; the upper half of it adds what is not looked at.
QUIRE_DEVICE float norm_factor_of_warp(const float* x, std::uint32_t width, float eps) {
  float squares = 0.0f;
  for (std::uint32_t i = thread() % kSumLanes; i < width; i += kSumLanes) squares = fma(x[i], x[i], squares);
  const float mean = quotient(sum_of_lanes(squares), static_cast<float>(width));
  return quotient(1.0f, root(mean + eps));
}

// out = (x · r) · scale, r = 1 / sqrt(sum16(x²) / width + eps).
struct Norm {
  struct Args {
    const float* x = nullptr;
    const float* scale = nullptr;
    float eps = 0.0f;
    std::uint32_t width = 0;
    float* out = nullptr;
  };
  static constexpr unsigned kThreads = 256;
  static constexpr std::size_t kSharedBytes = kNormShared;
  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const float* x = a.x + std::size_t{block().x} * a.width;
    float* out = a.out + std::size_t{block().x} * a.width;
    const float factor = norm_factor<kThreads>(x, a.width, a.eps, reinterpret_cast<float*>(shared));
    for (std::uint32_t i = thread(); i < a.width; i += kThreads) out[i] = x[i] * factor * a.scale[i];
  }
};

// silu(gate) · up.
QUIRE_DEVICE float gated(float gate, float up) { return quotient(gate, 1.0f + sample::exp_f32(-gate)) * up; }

struct ActMul {
  struct Args {
    const float* gate_up = nullptr;  // [rows, 2 width]
    std::uint32_t width = 0;
    float* out = nullptr;
  };
  static constexpr unsigned kThreads = 256;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::size_t row = block().x;
    const std::uint32_t i = block().y * kThreads + thread();
    if (i >= a.width) return;
    const float gate = a.gate_up[row * 2 * a.width + i];
    const float up = a.gate_up[row * 2 * a.width + a.width + i];
    a.out[row * a.width + i] = gated(gate, up);
  }
};

struct Add {
  struct Args {
    float* x = nullptr;
    const float* y = nullptr;
    std::uint32_t width = 0;
  };
  static constexpr unsigned kThreads = 256;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::uint32_t i = block().y * kThreads + thread();
    if (i >= a.width) return;
    const std::size_t at = std::size_t{block().x} * a.width + i;
    a.x[at] = a.x[at] + a.y[at];
  }
};

// out[r, out_column + i] = x[from(r), x_column + i], i < width; from(r) is rows[r], or r.
struct CopyRows {
  struct Args {
    const float* x = nullptr;
    std::uint32_t x_width = 0;
    std::uint32_t x_column = 0;
    const std::uint32_t* rows = nullptr;
    std::uint32_t width = 0;
    float* out = nullptr;
    std::uint32_t out_width = 0;
    std::uint32_t out_column = 0;
  };
  static constexpr unsigned kThreads = 256;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::uint32_t i = block().y * kThreads + thread();
    if (i >= a.width) return;
    const std::size_t from = a.rows == nullptr ? block().x : a.rows[block().x];
    a.out[std::size_t{block().x} * a.out_width + a.out_column + i] = a.x[from * a.x_width + a.x_column + i];
  }
};

}  // namespace quire::gpu
