// Weight types that the tensor cores multiply: how a lane loads its part of a step (16 outputs × 64 inputs), and what
// it adds to the sums of a slice.
// Order   of a slice's sum, beginning with +0:
//           bf16, int8, fp8, int4  a chain of four products of 16 inputs per step, inputs ascending
//           w8a8                   integers
//           w4a8                   for each group of 32 inputs an integer d; then sum = fma(d, scale, sum)
//           blocks                 linear_block_forms.h
// Shape   sums: for each tile of 8 rows a lane's four elements (matrix.h).
// Source  ours.
#pragma once

#include "gpu/device/codes.h"
#include "gpu/device/integer_matrix.h"
#include "gpu/device/stream.h"
#include "gpu/device/weight_layout.h"

namespace quire::gpu {

// Sources of a step: global memory that is read once, or shared memory.
struct FromMemory {
  template <typename T>
  QUIRE_DEVICE T operator()(const T* at) const {
    return load_once(at);
  }
};
struct FromShared {
  template <typename T>
  QUIRE_DEVICE T operator()(const T* at) const {
    return *at;
  }
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

// sums[r] += weights · the given part of rows[r].
template <typename Rows, typename Sum, unsigned kRowTiles>
QUIRE_DEVICE void add_part(const std::uint32_t (&weights)[4], const Rows (&rows)[kRowTiles], unsigned part,
                           Sum (&sums)[kRowTiles]) {
  QUIRE_UNROLLED for (unsigned r = 0; r < kRowTiles; ++r) {
    std::uint32_t words[2];
    rows[r].put(part, words);
    add_product(sums[r], weights, words);
  }
}

// Scales of a step's two groups, each for outputs g and g + 8.
struct GroupScales {
  Words2 words;
  template <typename From>
  QUIRE_DEVICE static GroupScales load(const std::byte* step, unsigned lane, const From& from) {
    return {from(reinterpret_cast<const Words2*>(step + kNibbleBytes) + lane / 4)};
  }
  QUIRE_DEVICE float of(unsigned group, unsigned upper) const {
    const std::uint32_t both = words.words[group];
    return f32_of_bits(upper == 0 ? both << 16 : both & 0xffff0000u);
  }
};

// A lane's part of a step of weights.
struct PairStep {
  Words4 parts[4];
  template <typename From>
  QUIRE_DEVICE static PairStep load(const std::byte* step, unsigned lane, const From& from) {
    const auto* at = reinterpret_cast<const Words4*>(step) + lane;
    return {{from(at), from(at + kWarp), from(at + 2 * kWarp), from(at + 3 * kWarp)}};
  }
};
struct ByteStep {
  Words4 halves[2];
  template <typename From>
  QUIRE_DEVICE static ByteStep load(const std::byte* step, unsigned lane, const From& from) {
    const auto* at = reinterpret_cast<const Words4*>(step) + lane;
    return {{from(at), from(at + kWarp)}};
  }
};
struct NibbleStep {
  Words4 nibbles;
  GroupScales scales;
  template <typename From>
  QUIRE_DEVICE static NibbleStep load(const std::byte* step, unsigned lane, const From& from) {
    return {from(reinterpret_cast<const Words4*>(step) + lane), GroupScales::load(step, lane, from)};
  }
};

// Steps of weights that LinearSplit has in flight: as many as there are registers for, kRegisters each.
template <unsigned kRegisters, unsigned kRowTiles, unsigned kTiles>
constexpr unsigned steps_ahead() {
  constexpr unsigned room = kRowTiles == 1 && kRegisters < 16 ? 32 : kRowTiles <= 2 ? 64 : 32;
  constexpr unsigned steps = room / (kRegisters * kTiles);
  return steps >= 4 ? 4 : steps >= 2 ? 2 : 1;
}

// add(): multiplies half a step's inputs, for one tile of outputs. widen(): the bf16 words of a step's fragment of 16
// inputs.
struct Bf16Form {
  using Rows = RowsInBf16;
  using Sum = Product;
  using Step = PairStep;
  static constexpr backend::Format kFormat = backend::Format::kBF16;
  template <unsigned kRowTiles, unsigned kTiles>
  static constexpr unsigned ahead() {
    return steps_ahead<16, kRowTiles, kTiles>();
  }
  template <unsigned kRowTiles>
  QUIRE_DEVICE static void add(const Step& w, unsigned half, const Rows (&rows)[kRowTiles], Sum (&sums)[kRowTiles]) {
    QUIRE_UNROLLED for (unsigned part = 0; part < 2; ++part) add_part(w.parts[half * 2 + part].words, rows, part, sums);
  }
  QUIRE_DEVICE static void widen(const Step& w, unsigned part, std::uint32_t (&words)[4]) {
    QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) words[i] = w.parts[part].words[i];
  }
};

// kPair converts bytes 0 and 2 of a word to bf16.
template <backend::Format kOf, std::uint32_t (*kPair)(std::uint32_t)>
struct ByteForm {
  using Rows = RowsInBf16;
  using Sum = Product;
  using Step = ByteStep;
  static constexpr backend::Format kFormat = kOf;
  template <unsigned kRowTiles, unsigned kTiles>
  static constexpr unsigned ahead() {
    return steps_ahead<8, kRowTiles, kTiles>();
  }
  template <unsigned kRowTiles>
  QUIRE_DEVICE static void add(const Step& w, unsigned half, const Rows (&rows)[kRowTiles], Sum (&sums)[kRowTiles]) {
    QUIRE_UNROLLED for (unsigned part = 0; part < 2; ++part) {
      std::uint32_t words[4];
      widen(w, half * 2 + part, words);
      add_part(words, rows, part, sums);
    }
  }
  QUIRE_DEVICE static void widen(const Step& w, unsigned part, std::uint32_t (&words)[4]) {
    const std::uint32_t low = w.halves[part / 2].words[part % 2 * 2];
    const std::uint32_t high = w.halves[part / 2].words[part % 2 * 2 + 1];
    words[0] = kPair(low);
    words[1] = kPair(low >> 8);
    words[2] = kPair(high);
    words[3] = kPair(high >> 8);
  }
};
struct Int8Form : ByteForm<backend::Format::kInt8, pair_of_bytes> {};
struct Fp8Form : ByteForm<backend::Format::kFp8, pair_of_fp8_bytes> {};

// A number is its code times the scale of its group and output, rounded once.
struct Int4Form {
  using Rows = RowsInBf16;
  using Sum = Product;
  using Step = NibbleStep;
  static constexpr backend::Format kFormat = backend::Format::kInt4;
  template <unsigned kRowTiles, unsigned kTiles>
  static constexpr unsigned ahead() {
    return steps_ahead<12, kRowTiles, kTiles>();
  }
  template <unsigned kRowTiles>
  QUIRE_DEVICE static void add(const Step& w, unsigned half, const Rows (&rows)[kRowTiles], Sum (&sums)[kRowTiles]) {
    QUIRE_UNROLLED for (unsigned part = 0; part < 2; ++part) {
      std::uint32_t words[4];
      widen(w, half * 2 + part, words);
      add_part(words, rows, part, sums);
    }
  }
  QUIRE_DEVICE static void widen(const Step& w, unsigned part, std::uint32_t (&words)[4]) {
    // The addend -0 leaves every product unchanged, including its sign.
    constexpr std::uint32_t kMinusZero = 0x80008000u;
    const std::uint32_t both = w.scales.words.words[part / 2];
    const std::uint32_t scales[2] = {both << 16 | (both & 0xffffu), (both & 0xffff0000u) | both >> 16};
    QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) {
      words[i] = fma_of_pair(pair_of_nibbles(w.nibbles.words[part] >> 4 * i), scales[i % 2], kMinusZero);
    }
  }
};

struct W8A8Form {
  using Rows = RowsInIntegers;
  using Sum = IntegerProduct;
  using Step = ByteStep;
  static constexpr backend::Format kFormat = backend::Format::kW8A8;
  template <unsigned kRowTiles, unsigned kTiles>
  static constexpr unsigned ahead() {
    return steps_ahead<8, kRowTiles, kTiles>();
  }
  template <unsigned kRowTiles>
  QUIRE_DEVICE static void add(const Step& w, unsigned half, const Rows (&rows)[kRowTiles], Sum (&sums)[kRowTiles]) {
    add_part(w.halves[half].words, rows, 0, sums);
  }
};

struct W4A8Form {
  using Rows = RowsInIntegers;
  using Sum = Product;
  using Step = NibbleStep;
  static constexpr backend::Format kFormat = backend::Format::kW4A8;
  template <unsigned kRowTiles, unsigned kTiles>
  static constexpr unsigned ahead() {
    return steps_ahead<6, kRowTiles, kTiles>();
  }
  template <unsigned kRowTiles>
  QUIRE_DEVICE static void add(const Step& w, unsigned half, const Rows (&rows)[kRowTiles], Sum (&sums)[kRowTiles]) {
    const std::uint32_t low = w.nibbles.words[half * 2];
    const std::uint32_t high = w.nibbles.words[half * 2 + 1];
    const std::uint32_t words[4] = {bytes_of_low_nibbles(low), bytes_of_high_nibbles(low), bytes_of_low_nibbles(high),
                                    bytes_of_high_nibbles(high)};
    // A few row tiles at a time: all eight took more registers than there are.
    constexpr unsigned kWholes = kRowTiles < 4 ? kRowTiles : 4;
    QUIRE_UNROLLED for (unsigned first = 0; first < kRowTiles; first += kWholes) {
      IntegerProduct wholes[kWholes];
      QUIRE_UNROLLED for (unsigned r = 0; r < kWholes; ++r) {
        std::uint32_t of_rows[2];
        rows[first + r].put(0, of_rows);
        add_product(wholes[r], words, of_rows);
      }
      QUIRE_UNROLLED for (unsigned r = 0; r < kWholes; ++r) {
        QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) {
          const float d = static_cast<float>(wholes[r].c[i]) * kNibbleUnit;
          sums[first + r].c[i] = fma(d, w.scales.of(half, i / 2), sums[first + r].c[i]);
        }
      }
    }
  }
};

}  // namespace quire::gpu
