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

struct Embed {
  struct Args {
    const std::int32_t* tokens = nullptr;  // or fed_by(speaker): what that one said in the step before, -1: some token
    const std::int32_t* said = nullptr;    // by speaker
    WeightView table;
    float* out = nullptr;
    std::uint32_t first = 0;  // token that the table begins with; where it has a token not, -0 stands for its row
  };
  static constexpr unsigned kThreads = 128;
  static constexpr std::int32_t fed_by(std::uint32_t speaker) { return -1 - static_cast<std::int32_t>(speaker); }

  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::uint32_t row = block().x;
    std::int32_t id = a.tokens[row];
    if (id < 0) id = a.said[-1 - id];
    const std::uint32_t token = static_cast<std::uint32_t>(id < 0 ? 0 : id) - a.first;
    for (std::uint32_t i = thread(); i < a.table.k; i += kThreads) {
      a.out[std::size_t{row} * a.table.k + i] = token < a.table.n ? number_at(a.table, token, i) : -0.0f;
    }
  }
};

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
  static constexpr std::size_t kSharedBytes = sizeof(float);
  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    auto* factor = reinterpret_cast<float*>(shared);
    const float* x = a.x + std::size_t{block().x} * a.width;
    float* out = a.out + std::size_t{block().x} * a.width;
    if (thread() < kWarp) {
      const float r = factor_of(x, a.width, a.eps);
      if (thread() == 0) *factor = r;
    }
    sync_block();
    for (std::uint32_t i = thread(); i < a.width; i += kThreads) out[i] = x[i] * *factor * a.scale[i];
  }
  // By a warp; the upper half of it adds what is not looked at.
  QUIRE_DEVICE static float factor_of(const float* x, std::uint32_t width, float eps) {
    float squares = 0.0f;
    for (std::uint32_t i = thread() % kSumLanes; i < width; i += kSumLanes) squares = fma(x[i], x[i], squares);
    const float mean = quotient(sum_of_lanes(squares), static_cast<float>(width));
    return quotient(1.0f, root(mean + eps));
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
