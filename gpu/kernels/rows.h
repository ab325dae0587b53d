// Kernels over rows: embedding, norms, activations, sums, soft caps and copies. Bits of the CPU; equations:
// core/backend/step_ops.h.
// Shape   rows [rows][width] of f32.
// Launch  one thread block per row (grid.x), or per row and some of its columns (grid.y).
// Source  ours.
#pragma once

#include "core/backend/linear.h"
#include "core/sample/math.h"
#include "gpu/device/layout.h"
#include "gpu/device/numbers.h"
#include "gpu/device/simt.h"
#include "gpu/kernels/batch_rows.h"

namespace quire::gpu {

inline constexpr unsigned kSumLanes = 16;

// Adds lanes l and l + 8, then l and l + 4, l + 2, l + 1. The warp's first 16 lanes all have the result.
QUIRE_DEVICE float sum_of_lanes(float lane) {
  for (unsigned half = kSumLanes / 2; half > 0; half /= 2) lane = lane + shuffle_xor(lane, half);
  return lane;
}

inline constexpr std::uint32_t kSquaresAtOnce = 4096;  // a multiple of kSquaresAhead * kSumLanes
inline constexpr std::uint32_t kSquaresAhead = 16;
inline constexpr std::size_t kNormShared = (kSquaresAtOnce + 1) * sizeof(float);

// 1 / sqrt(sum16(x²) / width + eps). The block loads the row, one warp adds, with numbers in flight while others are
// added: each would be waited for otherwise. Padding is 0, whose square changes no sum.
template <unsigned kThreads>
QUIRE_DEVICE float norm_factor(const float* x, std::uint32_t width, float eps, float* shared) {
  constexpr unsigned kFetched = 16;  // per thread, at once
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
    // Token ids, or fed_by(logits row): the token sampled from that row in the previous step (-1 there: any token).
    const std::int32_t* tokens = nullptr;
    const std::int32_t* said = nullptr;  // sampled tokens of the previous step, by logits row
    WeightView table{};
    float scale = 1.0f;
    float* out = nullptr;
    // Token of the table's first row, if the table is a shard; a token that it does not have gives a row of -0.
    std::uint32_t first = 0;
    const RowOfBatch* rows = nullptr;  // not null: of the rows' positions instead of tokens
    std::uint32_t num_tokens = ~0u;    // those from here on take the row of token 0
  };
  static constexpr unsigned kThreads = 128;
  static constexpr std::int32_t fed_by(std::uint32_t logits_row) { return -1 - static_cast<std::int32_t>(logits_row); }

  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::uint32_t row = block().x;
    const std::uint32_t token = (a.rows != nullptr ? a.rows[row].position : token_of(a, row)) - a.first;
    const std::uint32_t i = block().y * kThreads + thread();
    if (i >= a.table.k) return;
    a.out[std::size_t{row} * a.table.k + i] = token < a.table.n ? number_at(a.table, token, i) * a.scale : -0.0f;
  }

 private:
  QUIRE_DEVICE static std::uint32_t token_of(const Args& a, std::uint32_t row) {
    std::int32_t id = a.tokens[row];
    if (id < 0) id = a.said[-1 - id];
    const auto token = static_cast<std::uint32_t>(id < 0 ? 0 : id);
    return token < a.num_tokens ? token : 0;
  }
};

// norm_factor() for a few numbers, by one warp, whose upper 16 lanes compute the same as its lower ones.
QUIRE_DEVICE float norm_factor_of_warp(const float* x, std::uint32_t width, float eps) {
  float squares = 0.0f;
  for (std::uint32_t i = thread() % kSumLanes; i < width; i += kSumLanes) squares = fma(x[i], x[i], squares);
  const float mean = quotient(sum_of_lanes(squares), static_cast<float>(width));
  return quotient(1.0f, root(mean + eps));
}

// The sum of sum16(x), by the first warp; all threads have it.
template <unsigned kThreads>
QUIRE_DEVICE float row_sum(const float* x, std::uint32_t width, float center, bool squares, float* shared) {
  if (thread() < kWarp) {
    float lane = 0.0f;
    for (std::uint32_t i = thread() % kSumLanes; i < width; i += kSumLanes) {
      const float v = x[i] - center;
      lane = squares ? fma(v, v, lane) : lane + x[i];
    }
    const float sum = sum_of_lanes(lane);
    if (thread() == 0) shared[kSquaresAtOnce] = sum;
  }
  sync_block();
  const float sum = shared[kSquaresAtOnce];
  sync_block();
  return sum;
}

// Norms of rows, or of groups of values of rows. grid.y: the group.
struct NormRows {
  struct Args {
    const float* x = nullptr;
    const float* scale = nullptr;
    float eps = 0.0f;
    std::uint32_t width = 0;         // of a group
    float* out = nullptr;            // may be x
    std::uint32_t stride = 0;        // of rows of x and out
    std::uint32_t scale_stride = 0;  // of the groups' scales and biases; 0: all groups have the same
    const float* bias = nullptr;
    backend::NormKind kind = backend::NormKind::kRms;
  };
  static constexpr unsigned kThreads = 256;
  static constexpr std::size_t kSharedBytes = kNormShared;
  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const std::size_t at = std::size_t{block().x} * a.stride + block().y * a.width;
    const std::size_t first = std::size_t{block().y} * a.scale_stride;
    auto* const floats = reinterpret_cast<float*>(shared);
    if (a.kind == backend::NormKind::kLayer) return run_layer(a, a.x + at, a.out + at, first, floats);
    const float factor = norm_factor<kThreads>(a.x + at, a.width, a.eps, floats);
    for (std::uint32_t i = thread(); i < a.width; i += kThreads) {
      a.out[at + i] = a.x[at + i] * factor * a.scale[first + i];
    }
  }

 private:
  QUIRE_DEVICE static void run_layer(const Args& a, const float* x, float* out, std::size_t first, float* shared) {
    const auto width = static_cast<float>(a.width);
    const float mean = quotient(row_sum<kThreads>(x, a.width, 0.0f, false, shared), width);
    const float variance = quotient(row_sum<kThreads>(x, a.width, mean, true, shared), width);
    const float factor = quotient(1.0f, root(variance + a.eps));
    for (std::uint32_t i = thread(); i < a.width; i += kThreads) {
      const float normed = (x[i] - mean) * factor;
      out[i] = a.bias == nullptr ? normed * a.scale[first + i] : fma(normed, a.scale[first + i], a.bias[first + i]);
    }
  }
};

constexpr bool by_sigmoid(backend::Activation kind) {
  return kind == backend::Activation::kSilu || kind == backend::Activation::kGeluTanh;
}
// Of a kind that is by_sigmoid().
QUIRE_DEVICE float sigmoid_activated(backend::Activation kind, float gate) {
  const float w =
      kind == backend::Activation::kSilu ? gate : gate * fma(sample::kGeluCubic, gate * gate, sample::kGeluLinear);
  return quotient(gate, 1.0f + sample::exp_f32(-w));
}
QUIRE_DEVICE float activated(backend::Activation kind, float gate) {
  if (kind == backend::Activation::kRelu2) {
    const float positive = 0.0f > gate ? 0.0f : gate;
    return positive * positive;
  }
  if (kind == backend::Activation::kGelu) return sample::gelu_f32(gate);
  if (kind == backend::Activation::kRelu) return 0.0f > gate ? 0.0f : gate;
  return sigmoid_activated(kind, gate);
}

QUIRE_DEVICE float xielu(const backend::Xielu& numbers, float x) {
  const float line = numbers.linear * x;
  if (x > 0.0f) return fma(numbers.positive * x, x, line);
  return fma(sample::expm1_f32(numbers.most < x ? numbers.most : x) - x, numbers.negative, line);
}

struct Activate {
  struct Args {
    const float* x = nullptr;  // [rows, width], or gated [rows, 2 width]
    std::uint32_t width = 0;
    float* out = nullptr;
    backend::Activation kind = backend::Activation::kSilu;
    bool gated = true;
    backend::Xielu numbers{};
  };
  static constexpr unsigned kThreads = 256;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::size_t row = block().x;
    const std::uint32_t i = block().y * kThreads + thread();
    if (i >= a.width) return;
    const float* x = a.x + row * (a.gated ? 2 : 1) * a.width;
    const float y = a.kind == backend::Activation::kXielu ? xielu(a.numbers, x[i]) : activated(a.kind, x[i]);
    a.out[row * a.width + i] = a.gated ? y * x[a.width + i] : y;
  }
};

struct Add {
  struct Args {
    float* x = nullptr;
    const float* y = nullptr;
    std::uint32_t width = 0;
    float scale = 1.0f;
  };
  static constexpr unsigned kThreads = 256;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::uint32_t i = block().y * kThreads + thread();
    if (i >= a.width) return;
    const std::size_t at = std::size_t{block().x} * a.width + i;
    a.x[at] = fma(a.y[at], a.scale, a.x[at]);
  }
};

// x[t, i] = x[t, i] · y[t, y_column + i]; y null: x · scale, with a cap cap · tanh(x · scale / cap).
struct Rescale {
  struct Args {
    float* x = nullptr;
    std::uint32_t width = 0;
    float scale = 1.0f;
    float cap = 0.0f;
    const float* y = nullptr;
    std::uint32_t y_width = 0;
    std::uint32_t y_column = 0;
  };
  static constexpr unsigned kThreads = 256;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::uint32_t i = block().y * kThreads + thread();
    if (i >= a.width) return;
    float& x = a.x[std::size_t{block().x} * a.width + i];
    if (a.y != nullptr) {
      x = x * a.y[std::size_t{block().x} * a.y_width + a.y_column + i];
      return;
    }
    const float z = x * a.scale;
    x = a.cap == 0.0f ? z : a.cap * sample::tanh_f32(quotient(z, a.cap));
  }
};

struct Clip {
  struct Args {
    float* x = nullptr;
    std::uint32_t width = 0;
    float limit = 0.0f;
  };
  static constexpr unsigned kThreads = 256;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::uint32_t i = block().y * kThreads + thread();
    if (i >= a.width) return;
    float& x = a.x[std::size_t{block().x} * a.width + i];
    const float raised = -a.limit > x ? -a.limit : x;
    x = a.limit < raised ? a.limit : raised;
  }
};

// x[t,:] scaled to the length of y[t,:]. One thread block per row, as of CutBelow.
struct MatchLength {
  struct Args {
    float* x = nullptr;
    const float* y = nullptr;
    std::uint32_t width = 0;
    float least = 0.0f;
  };
  static constexpr unsigned kThreads = 256;
  static constexpr std::size_t kSharedBytes = kNormShared;
  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    auto* const floats = reinterpret_cast<float*>(shared);
    const std::size_t at = std::size_t{block().x} * a.width;
    const auto width = static_cast<float>(a.width);
    const float wanted = quotient(row_sum<kThreads>(a.y + at, a.width, 0.0f, true, floats), width);
    const float mean = quotient(row_sum<kThreads>(a.x + at, a.width, 0.0f, true, floats), width);
    const float factor = quotient(root(wanted), root(a.least < mean ? mean : a.least));
    for (std::uint32_t i = thread(); i < a.width; i += kThreads) a.x[at + i] = a.x[at + i] * factor;
  }
};

struct CutBelow {
  struct Args {
    float* x = nullptr;
    std::uint32_t stride = 0;
    std::uint32_t width = 0;
    float deviations = 0.0f;
  };
  static constexpr unsigned kThreads = 256;
  static constexpr std::size_t kSharedBytes = kNormShared;
  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    auto* const floats = reinterpret_cast<float*>(shared);
    float* const x = a.x + std::size_t{block().x} * a.stride;
    const auto width = static_cast<float>(a.width);
    const float mean = quotient(row_sum<kThreads>(x, a.width, 0.0f, false, floats), width);
    const float variance = quotient(row_sum<kThreads>(x, a.width, mean, true, floats), width);
    const float limit = fma(root(variance), a.deviations, mean);
    for (std::uint32_t i = thread(); i < a.width; i += kThreads) {
      const float above = x[i] - limit;
      x[i] = 0.0f > above ? 0.0f : above;
    }
  }
};

// out_i = x_i + the sum over j of coefs[t, i n + j] x_j.
struct MixStreams {
  struct Args {
    const float* x[backend::kMaxStreams] = {};
    float* out[backend::kMaxStreams] = {};
    const float* coefs = nullptr;
    std::uint32_t width = 0;
    std::uint32_t count = 0;
  };
  static constexpr unsigned kThreads = 256;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::uint32_t e = block().y * kThreads + thread();
    if (e >= a.width) return;
    const std::size_t at = std::size_t{block().x} * a.width + e;
    const float* coef = a.coefs + std::size_t{block().x} * a.count * a.count;
    for (std::uint32_t i = 0; i < a.count; ++i) {
      float sum = a.x[i][at];
      for (std::uint32_t j = 0; j < a.count; ++j) sum = fma(a.x[j][at], *coef++, sum);
      a.out[i][at] = sum;
    }
  }
};

// x_i += (coefs[t, i] + 1) (y - x_0).
struct CorrectStreams {
  struct Args {
    float* x[backend::kMaxStreams] = {};
    float* y = nullptr;
    const float* coefs = nullptr;
    std::uint32_t width = 0;
    std::uint32_t count = 0;
  };
  static constexpr unsigned kThreads = 256;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::uint32_t e = block().y * kThreads + thread();
    if (e >= a.width) return;
    const std::size_t at = std::size_t{block().x} * a.width + e;
    const float change = fma(a.x[0][at], -1.0f, a.y[at]);
    a.y[at] = change;
    for (std::uint32_t i = 0; i < a.count; ++i) {
      a.x[i][at] = fma(change, a.coefs[std::size_t{block().x} * a.count + i] + 1.0f, a.x[i][at]);
    }
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

// Copies bytes, 16 at a time, between device memory and pinned host memory. `to` and `from` are multiples of 16.
struct CopyBytes {
  struct Args {
    void* to = nullptr;
    const void* from = nullptr;
    std::uint32_t bytes = 0;
  };
  static constexpr unsigned kThreads = 256;
  static constexpr std::uint32_t kUnit = 16;
  static constexpr std::uint32_t blocks_for(std::uint32_t bytes) {
    return (bytes + kThreads * kUnit - 1) / (kThreads * kUnit);
  }
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::uint32_t first = (block().x * kThreads + thread()) * kUnit;
    auto* const to = static_cast<std::byte*>(a.to);
    const auto* const from = static_cast<const std::byte*>(a.from);
    if (first + kUnit <= a.bytes) {
      *reinterpret_cast<Bytes16*>(to + first) = *reinterpret_cast<const Bytes16*>(from + first);
    } else {
      for (std::uint32_t i = first; i < a.bytes; ++i) to[i] = from[i];
    }
  }

 private:
  struct alignas(16) Bytes16 {
    std::uint32_t words[4];
  };
};

}  // namespace quire::gpu
