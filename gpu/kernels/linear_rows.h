// Rows for the tensor cores (weight_layout.h): as lanes load them, and their preparation: as they are or normed first;
// rounded to bf16, or quantized to int8 with a scale for each group of 256 inputs or for the row, or, for blocks, for
// each 32 inputs. Equations: core/backend/step_ops.h, norm, w8a8 and blocks; the bits are the CPU's.
// Shape   x [T, K] f32. Inputs that pad the last step are 0; rows that pad the last tile are not written.
// Launch  grid.x: rows, grid.y: pieces of a row. Every block of a normed row computes its sum of squares again, in one
//         order.
// Source  ours.
#pragma once

#include "gpu/device/weight_layout.h"
#include "gpu/kernels/routes.h"

namespace quire::gpu {

struct RowsToPut {
  const float* x = nullptr;
  const float* norm = nullptr;  // scale [K]; null: no norm
  float eps = 0.0f;
  std::uint32_t width = 0;                 // K
  const std::uint32_t* columns = nullptr;  // of the weight that they are put for
  const std::uint32_t* slots = nullptr;    // [T] of rows by expert; null: row t is put at t
  ExpertRows experts{};                    // of such rows: their columns
};

// A lane's part of half a step, 32 inputs, of 8 rows.
struct RowsInBf16 {
  using Words = Words4;
  static constexpr std::size_t kStepBytes = kRowStep * 2;
  Words4 words;
  QUIRE_DEVICE static RowsInBf16 load(const std::byte* step, unsigned half, unsigned lane) {
    return {reinterpret_cast<const Words4*>(step)[half * kWarp + lane]};
  }
  // The words of 16 inputs.
  QUIRE_DEVICE void put(unsigned part, std::uint32_t (&out)[2]) const {
    out[0] = words.words[part * 2];
    out[1] = words.words[part * 2 + 1];
  }
};
struct RowsInIntegers {
  using Words = Words2;
  static constexpr std::size_t kStepBytes = kRowStep;
  Words2 words;
  QUIRE_DEVICE static RowsInIntegers load(const std::byte* step, unsigned half, unsigned lane) {
    return {reinterpret_cast<const Words2*>(step)[half * kWarp + lane]};
  }
  // The words of all 32 inputs.
  QUIRE_DEVICE void put(unsigned /*part*/, std::uint32_t (&out)[2]) const {
    out[0] = words.words[0];
    out[1] = words.words[1];
  }
};

// Rows for blocks: also `numbers`, of which lane 4 g + q has number q of row g.
struct RowsOfBlocks {
  using Words = Words4;
  enum Number : unsigned { kScale, kSumOfFirst, kSumOfSecond, kSum };  // xs; codes of 16 inputs · xs, and of all 32
  static constexpr std::size_t kStepBytes = kRowStep * 2;
  Words4 words;
  QUIRE_DEVICE static RowsOfBlocks load(const std::byte* step, unsigned half, unsigned lane) {
    return {reinterpret_cast<const Words4*>(step)[half * kWarp + lane]};
  }
  QUIRE_DEVICE void put(unsigned /*part*/, std::uint32_t (&out)[2]) const {
    out[0] = words.words[0];
    out[1] = words.words[1];
  }
  // A number of the rows of the lane's elements 0 and 1 of a tile. Called by all lanes of a warp.
  QUIRE_DEVICE void number(Number which, float (&out)[2]) const {
    const unsigned row = thread() % 4 * 2;
    QUIRE_UNROLLED for (unsigned i = 0; i < 2; ++i) {
      out[i] = f32_of_bits(shuffle(words.words[2], (row + i) * 4 + which));
    }
  }
};

inline constexpr unsigned kPutThreads = 256;

// Numbers of a prepared row by index; 0 behind its width.
struct PreparedRow {
  const float* x;
  const float* norm;
  std::uint32_t width;
  const std::uint32_t* columns;
  float factor;

  QUIRE_DEVICE PreparedRow(const RowsToPut& rows, std::byte* shared)
      : x(rows.x + std::size_t{block().x} * rows.width),
        norm(rows.norm),
        width(rows.width),
        columns(columns_of(rows)),
        factor(1.0f) {
    if (norm != nullptr) factor = norm_factor<kPutThreads>(x, width, rows.eps, reinterpret_cast<float*>(shared));
  }
  QUIRE_DEVICE static const std::uint32_t* columns_of(const RowsToPut& rows) {
    if (rows.slots == nullptr) return rows.columns;
    return rows.experts.weights[rows.experts.tiles[slot(rows) / kTileRows].expert].columns;
  }
  QUIRE_DEVICE static std::uint32_t slot(const RowsToPut& rows) {
    return rows.slots == nullptr ? block().x : rows.slots[block().x];
  }
  QUIRE_DEVICE float at(std::uint32_t i) const {
    if (i >= width) return 0.0f;
    if (columns != nullptr) i = columns[i];
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
  static constexpr unsigned kMinBlocks = 6;  // with eight, some of them spill
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
    const std::uint32_t slot = PreparedRow::slot(a.rows);
    QUIRE_UNROLLED for (std::uint32_t n = 0; n < kWordsOfThread; ++n) {
      const std::uint32_t i = first + n * kThreads + thread();
      if (i >= num_words) break;
      const std::uint32_t input = a.in_blocks ? i * 2 : i / 16 * 32 + i % 4 * 8 + i / 4 % 4 * 2;
      const std::uint32_t both = std::uint32_t{bf16_of_f32(row.at(input + 1))} << 16 | bf16_of_f32(row.at(input));
      const std::size_t place =
          a.in_blocks ? place_in_row_blocks(row.width, slot, input) : place_in_rows(row.width, slot, input);
      *reinterpret_cast<std::uint32_t*>(a.out + place) = both;
    }
  }
};

// Scale of numbers that are quantised together, from the bits of the largest magnitude: they order like integers, and
// those that are not finite are the highest.
struct GroupScale {
  float inverse;  // 0: all codes are 0
  float scale;

  QUIRE_DEVICE explicit GroupScale(std::uint32_t size_bits) {
    constexpr std::uint32_t kInfinity = 0x7f800000u;
    const float size = f32_of_bits(size_bits);
    inverse = quotient(127.0f, size);
    const bool is_faulty = size_bits >= kInfinity;
    const bool has_codes = !is_faulty && bits_of(inverse) < kInfinity;
    if (!has_codes) inverse = 0.0f;
    scale = is_faulty ? f32_of_bits(0x7fc00000u) : has_codes ? quotient(size, 127.0f) : 0.0f;
  }
  // A whole number in -127..127.
  QUIRE_DEVICE float code(float x) const {
    constexpr float kRounder = 0x1.8p23f;  // adding and subtracting it rounds to an integer, ties to even
    return inverse == 0.0f ? 0.0f : (x * inverse + kRounder) - kRounder;
  }
  QUIRE_DEVICE static std::uint32_t byte_of(float code) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(code)) & 0xffu;
  }
};

QUIRE_DEVICE std::uint32_t larger_size(std::uint32_t size_bits, float x) {
  const std::uint32_t bits = bits_of(x) & 0x7fffffffu;
  return bits > size_bits ? bits : size_bits;
}
// The largest of `lanes` adjacent lanes.
QUIRE_DEVICE std::uint32_t largest_size(std::uint32_t size_bits, unsigned lanes) {
  for (unsigned mask = lanes / 2; mask > 0; mask /= 2) {
    size_bits = larger_size(size_bits, shuffle_xor(f32_of_bits(size_bits), mask));
  }
  return size_bits;
}

struct PutInIntegers {
  struct Args {
    RowsToPut rows;
    bool has_one_scale = false;  // of a row, not of each group
    std::int8_t* out = nullptr;
    float* scales = nullptr;  // [T, slices]
  };
  static constexpr unsigned kThreads = kPutThreads;
  static constexpr unsigned kMinBlocks = 6;  // with eight, some of them spill
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
      std::uint32_t size_bits = 0;
      QUIRE_UNROLLED for (unsigned i = 0; i < kOfLane; ++i) {
        x[i] = row.at(input_of(group, lane, i));
        size_bits = larger_size(size_bits, x[i]);
      }
      if (a.has_one_scale) size_bits = size_of_row(row, lane);
      const GroupScale scale(largest_size(size_bits, kWarp));
      put_codes(a, row.width, group, lane, x, scale);
      if (lane == 0) a.scales[std::size_t{PreparedRow::slot(a.rows)} * num_groups + group] = scale.scale;
    }
  }

 private:
  // The largest of a lane's share of the row.
  QUIRE_DEVICE static std::uint32_t size_of_row(const PreparedRow& row, unsigned lane) {
    std::uint32_t size_bits = 0;
    for (std::uint32_t i = lane; i < row.width; i += kWarp) size_bits = larger_size(size_bits, row.at(i));
    return size_bits;
  }
  QUIRE_DEVICE static std::uint32_t input_of(std::uint32_t group, unsigned lane, unsigned i) {
    return group * kSliceInputs + i / 4 * 4 * kWarp + lane * 4 + i % 4;
  }
  QUIRE_DEVICE static void put_codes(const Args& a, std::uint32_t width, std::uint32_t group, unsigned lane,
                                     const float (&x)[kOfLane], const GroupScale& scale) {
    QUIRE_UNROLLED for (unsigned four = 0; four < kOfLane / 4; ++four) {
      std::uint32_t word = 0;
      QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) {
        word |= GroupScale::byte_of(scale.code(x[four * 4 + i])) << 8 * i;
      }
      const std::uint32_t input = input_of(group, lane, four * 4);
      if (input >= num_steps(width) * kStepInputs) continue;
      *reinterpret_cast<std::uint32_t*>(a.out + place_in_integer_rows(width, PreparedRow::slot(a.rows), input)) = word;
    }
  }
};

// Rows for blocks (RowsOfBlocks): eight lanes for each 32 inputs, four adjacent ones each.
struct PutForBlocks {
  struct Args {
    RowsToPut rows;
    std::byte* out = nullptr;
  };
  static constexpr unsigned kThreads = kPutThreads;
  static constexpr unsigned kMinBlocks = 6;  // with eight, some of them spill
  static constexpr std::size_t kSharedBytes = kNormShared;
  static constexpr unsigned kOfLane = 4;
  static constexpr unsigned kLanes = kGroupInputs / kOfLane;
  static constexpr std::uint32_t kStepBytes = kRowStep * 2;
  static constexpr std::uint32_t pieces(std::uint32_t width) {
    return pieces_of(num_steps(width) * kStepInputs, kThreads * kOfLane);
  }

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const PreparedRow row(a.rows, shared);
    const std::uint32_t input = (block().y * kThreads + thread()) * kOfLane;
    float x[kOfLane];
    std::uint32_t size_bits = 0;
    QUIRE_UNROLLED for (unsigned i = 0; i < kOfLane; ++i) {
      x[i] = row.at(input + i);
      size_bits = larger_size(size_bits, x[i]);
    }
    const GroupScale scale(largest_size(size_bits, kLanes));
    std::uint32_t codes = 0;
    float sum = 0.0f;  // exact
    QUIRE_UNROLLED for (unsigned i = 0; i < kOfLane; ++i) {
      const float code = scale.code(x[i]);
      codes |= GroupScale::byte_of(code) << 8 * i;
      sum += code;
    }
    sum += shuffle_xor(sum, 1);
    sum += shuffle_xor(sum, 2);
    const float of_others = shuffle_xor(sum, kLanes / 2);
    if (input >= num_steps(row.width) * kStepInputs) return;

    const unsigned place = thread() % kLanes;
    const std::uint32_t slot = PreparedRow::slot(a.rows);
    const unsigned lane = slot % kTileRows * 4 + place % 4;
    const std::size_t step = std::size_t{slot / kTileRows} * num_steps(row.width) + input / kStepInputs;
    auto* const words = reinterpret_cast<std::uint32_t*>(a.out + step * kStepBytes) +
                        (input % kStepInputs / kGroupInputs * kWarp + lane) * 4;
    words[place / 4] = codes;
    // Number `place` of the row, by the lanes of the first 16 inputs.
    const float of_codes = place == 1 ? sum : place == 2 ? of_others : sum + of_others;
    const float number = place == 0 ? scale.scale : of_codes * scale.scale;
    words[2 + place / 4] = place < 4 ? bits_of(number) : 0u;
  }
};

}  // namespace quire::gpu
