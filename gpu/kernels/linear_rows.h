// Preparation of rows for the tensor cores (weight_layout.h): as they are or normed first; rounded to bf16, or
// quantized to int8 by groups of 256 inputs with a scale each. Equations: core/backend/step_ops.h, norm and w8a8;
// the bits are the CPU's.
// Shape   x [T, K] f32. Inputs that pad the last step are 0; rows that pad the last tile are not written.
// Launch  grid.x: rows, grid.y: pieces of a row. Every block of a normed row computes its sum of squares again, in one
//         order.
// Source  ours.
#pragma once

#include "gpu/device/weight_layout.h"
#include "gpu/kernels/rows.h"

namespace quire::gpu {

struct RowsToPut {
  const float* x = nullptr;
  const float* norm = nullptr;  // scale [K]; null: no norm
  float eps = 0.0f;
  std::uint32_t width = 0;  // K
};

inline constexpr unsigned kPutThreads = 256;

// Numbers of a prepared row by index; 0 behind its width.
struct PreparedRow {
  const float* x;
  const float* norm;
  std::uint32_t width;
  float factor;

  QUIRE_DEVICE PreparedRow(const RowsToPut& rows, std::byte* shared)
      : x(rows.x + std::size_t{block().x} * rows.width), norm(rows.norm), width(rows.width), factor(1.0f) {
    if (norm != nullptr) factor = norm_factor<kPutThreads>(x, width, rows.eps, reinterpret_cast<float*>(shared));
  }
  QUIRE_DEVICE float at(std::uint32_t i) const {
    if (i >= width) return 0.0f;
    return norm == nullptr ? x[i] : x[i] * factor * norm[i];
  }
};

struct PutInBf16 {
  struct Args {
    RowsToPut rows;
    std::uint16_t* out = nullptr;
    bool in_blocks = false;  // the layout of linear_warpgroups.h
  };
  static constexpr unsigned kThreads = kPutThreads;
  static constexpr std::size_t kSharedBytes = kNormShared;
  static constexpr std::uint32_t kWordsOfThread = 4;
  static constexpr std::uint32_t pieces(std::uint32_t width) {
    return pieces_of(num_steps(width) * kStepInputs / 2, kThreads * kWordsOfThread);
  }

  // A thread writes a few words of two numbers, in the order of their places.
  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const PreparedRow row(a.rows, shared);
    const std::uint32_t num_words = num_steps(row.width) * kStepInputs / 2;
    const std::uint32_t first = block().y * kThreads * kWordsOfThread;
    QUIRE_UNROLLED for (std::uint32_t n = 0; n < kWordsOfThread; ++n) {
      const std::uint32_t i = first + n * kThreads + thread();
      if (i >= num_words) break;
      const std::uint32_t input = a.in_blocks ? i * 2 : i / 16 * 32 + i % 4 * 8 + i / 4 % 4 * 2;
      const std::uint32_t both = std::uint32_t{bf16_of_f32(row.at(input + 1))} << 16 | bf16_of_f32(row.at(input));
      const std::size_t place =
          a.in_blocks ? place_in_row_blocks(row.width, block().x, input) : place_in_rows(row.width, block().x, input);
      *reinterpret_cast<std::uint32_t*>(a.out + place) = both;
    }
  }
};

struct PutInIntegers {
  struct Args {
    RowsToPut rows;
    std::int8_t* out = nullptr;
    float* scales = nullptr;  // [T, slices]
  };
  static constexpr unsigned kThreads = kPutThreads;
  static constexpr std::size_t kSharedBytes = kNormShared;
  static constexpr unsigned kWarps = kThreads / kWarp;
  static constexpr std::uint32_t pieces(std::uint32_t width) { return pieces_of(num_slices(width), kWarps); }
  static constexpr unsigned kOfLane = kSliceInputs / kWarp;

  // One warp per group of 256; each lane has four adjacent numbers twice.
  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const PreparedRow row(a.rows, shared);
    const std::uint32_t num_groups = num_slices(row.width);
    const unsigned lane = thread() % kWarp;
    const std::uint32_t group = block().y * kWarps + thread() / kWarp;
    if (group < num_groups) {
      float x[kOfLane];
      // Largest magnitude. The bits of magnitudes order like integers; those that are not finite are the highest.
      std::uint32_t size_bits = 0;
      QUIRE_UNROLLED for (unsigned i = 0; i < kOfLane; ++i) {
        x[i] = row.at(input_of(group, lane, i));
        const std::uint32_t bits = bits_of(x[i]) & 0x7fffffffu;
        size_bits = bits > size_bits ? bits : size_bits;
      }
      for (unsigned mask = kWarp / 2; mask > 0; mask /= 2) {
        const std::uint32_t other = bits_of(shuffle_xor(f32_of_bits(size_bits), mask));
        size_bits = other > size_bits ? other : size_bits;
      }
      const bool is_faulty = size_bits >= kInfinity;
      const float size = f32_of_bits(size_bits);
      const float inverse = quotient(127.0f, size);
      const bool has_codes = !is_faulty && bits_of(inverse) < kInfinity;
      put_codes(a, row.width, group, lane, x, has_codes ? inverse : 0.0f);
      const float scale = has_codes ? quotient(size, 127.0f) : 0.0f;
      if (lane == 0) {
        a.scales[std::size_t{block().x} * num_groups + group] = is_faulty ? f32_of_bits(0x7fc00000u) : scale;
      }
    }
  }

 private:
  static constexpr std::uint32_t kInfinity = 0x7f800000u;
  // Adding and subtracting it rounds to an integer, ties to even.
  static constexpr float kRounder = 0x1.8p23f;

  QUIRE_DEVICE static std::uint32_t input_of(std::uint32_t group, unsigned lane, unsigned i) {
    return group * kSliceInputs + i / 4 * 4 * kWarp + lane * 4 + i % 4;
  }
  QUIRE_DEVICE static void put_codes(const Args& a, std::uint32_t width, std::uint32_t group, unsigned lane,
                                     const float (&x)[kOfLane], float inverse) {
    QUIRE_UNROLLED for (unsigned four = 0; four < kOfLane / 4; ++four) {
      std::uint32_t word = 0;
      QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) {
        const float code = inverse == 0.0f ? 0.0f : (x[four * 4 + i] * inverse + kRounder) - kRounder;
        word |= (static_cast<std::uint32_t>(static_cast<std::int32_t>(code)) & 0xffu) << 8 * i;
      }
      const std::uint32_t input = input_of(group, lane, four * 4);
      if (input >= num_steps(width) * kStepInputs) continue;
      *reinterpret_cast<std::uint32_t*>(a.out + place_in_integer_rows(width, block().x, input)) = word;
    }
  }
};

}  // namespace quire::gpu
