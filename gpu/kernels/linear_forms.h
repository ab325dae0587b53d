// Weight types that the tensor cores multiply: how a lane loads its part of a step (16 outputs × 64 inputs), and what
// it adds to the sums of a slice.
// Order   of a slice's sum, beginning with +0:
//           bf16, int8, fp8, int4  a chain of four products of 16 inputs per step, inputs ascending
//           fp8 in groups          for each 32 inputs a chain d of two products; then sum = fma(d, s, sum)
//           w8a8                   integers
//           w4a8                   for each group of 32 inputs an integer d; then sum = fma(d, scale, sum)
//           blocks, times int8     for each group j an integer d; then sum = fma(d · xs, s, sum) and, with minima,
//                                  sum = fma(the row's codes · xs, m, sum): StepOps::multiply, slice by slice
// Shape   sums: for each tile of 8 rows a lane's four elements (matrix.h).
// Source  ours.
#pragma once

#include "gpu/device/codes.h"
#include "gpu/device/integer_matrix.h"
#include "gpu/device/stream.h"
#include "gpu/device/weight_layout.h"
#include "gpu/kernels/linear_rows.h"

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

// Blocks: the lane's words of both planes, and the scales of its outputs g and g + 8.
template <unsigned kCodes, unsigned kScales>
struct BlockStep {
  std::uint32_t codes[kCodes];
  std::uint32_t scales[kScales];
  template <typename From>
  QUIRE_DEVICE static BlockStep load(const std::byte* step, unsigned lane, const From& from) {
    constexpr unsigned kLow = backend::low_plane_bits(kCodes);
    BlockStep out;
    load_words<kLow>(step + lane * kLow * 4, from, out.codes);
    if constexpr (kCodes > kLow)
      load_words<kCodes - kLow>(step + (kLow * kWarp + lane * (kCodes - kLow)) * 4, from, out.codes + kLow);
    load_words<kScales>(step + (kCodes * kWarp + lane / 4 * kScales) * 4, from, out.scales);
    return out;
  }

 private:
  template <unsigned kCount, typename From>
  QUIRE_DEVICE static void load_words(const std::byte* at, const From& from, std::uint32_t* out) {
    if constexpr (kCount % 4 == 0) {
      QUIRE_UNROLLED for (unsigned i = 0; i < kCount / 4; ++i) {
        const Words4 words = from(reinterpret_cast<const Words4*>(at) + i);
        QUIRE_UNROLLED for (unsigned j = 0; j < 4; ++j) out[i * 4 + j] = words.words[j];
      }
    } else if constexpr (kCount % 2 == 0) {
      QUIRE_UNROLLED for (unsigned i = 0; i < kCount / 2; ++i) {
        const Words2 words = from(reinterpret_cast<const Words2*>(at) + i);
        QUIRE_UNROLLED for (unsigned j = 0; j < 2; ++j) out[i * 2 + j] = words.words[j];
      }
    } else {
      QUIRE_UNROLLED for (unsigned i = 0; i < kCount; ++i) out[i] =
          from(reinterpret_cast<const std::uint32_t*>(at) + i);
    }
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

// Codes of FP8 with a scale for each 32 inputs of a step, or for all 64.
template <backend::BlockType kType>
struct Fp8BlockForm {
  static constexpr BlockShape kShape = block_shape(kType);
  static constexpr unsigned kScales = kShape.wide_scales();
  struct Step {
    ByteStep codes;
    float scales[kScales][2];  // for outputs g and g + 8
    template <typename From>
    QUIRE_DEVICE static Step load(const std::byte* step, unsigned lane, const From& from) {
      Step out = {ByteStep::load(step, lane, from), {}};
      const auto* at = reinterpret_cast<const Words2*>(step + kShape.code_bytes()) + lane / 4 * kScales;
      QUIRE_UNROLLED for (unsigned i = 0; i < kScales; ++i) {
        const Words2 both = from(at + i);
        out.scales[i][0] = f32_of_bits(both.words[0]);
        out.scales[i][1] = f32_of_bits(both.words[1]);
      }
      return out;
    }
  };
  using Rows = RowsInBf16;
  using Sum = Product;
  static constexpr backend::Format kFormat = backend::Format::of_blocks(kType);
  template <unsigned kRowTiles, unsigned kTiles>
  static constexpr unsigned ahead() {
    return steps_ahead<8 + 2 * kScales, kRowTiles, kTiles>();
  }
  template <unsigned kRowTiles>
  QUIRE_DEVICE static void add(const Step& w, unsigned half, const Rows (&rows)[kRowTiles], Sum (&sums)[kRowTiles]) {
    std::uint32_t words[2][4];
    QUIRE_UNROLLED for (unsigned part = 0; part < 2; ++part) Fp8Form::widen(w.codes, half * 2 + part, words[part]);
    const auto& scales = w.scales[half % kScales];
    QUIRE_UNROLLED for (unsigned r = 0; r < kRowTiles; ++r) {
      Product d;
      QUIRE_UNROLLED for (unsigned part = 0; part < 2; ++part) {
        std::uint32_t of_rows[2];
        rows[r].put(part, of_rows);
        add_product(d, words[part], of_rows);
      }
      QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) sums[r].c[i] = fma(d.c[i], scales[i / 2], sums[r].c[i]);
    }
  }
};

// Codes are multiplied as the CPU's kernels do it, group by group.
template <backend::BlockType kType>
struct BlockForm {
  static constexpr BlockShape kShape = block_shape(kType);
  using Rows = RowsOfBlocks;
  using Sum = Product;
  using Step = BlockStep<kShape.bits, kShape.scale_words()>;
  static constexpr backend::Format kFormat = backend::Format::of_blocks(kType, backend::Format::Activation::kInt8);
  template <unsigned kRowTiles, unsigned kTiles>
  static constexpr unsigned ahead() {
    return steps_ahead<kShape.bits + kShape.scale_words(), kRowTiles, kTiles>();
  }

  template <unsigned kRowTiles>
  QUIRE_DEVICE static void add(const Step& w, unsigned half, const Rows (&rows)[kRowTiles], Sum (&sums)[kRowTiles]) {
    std::uint32_t words[4];
    codes(w, half, words);
    if constexpr (kShape.group == kIntegerInputs) {
      add_group(w, half, words, Rows::kSum, rows, sums);
    } else {
      const std::uint32_t first[4] = {words[0], words[1], 0, 0};
      const std::uint32_t second[4] = {0, 0, words[2], words[3]};
      add_group(w, half * 2, first, Rows::kSumOfFirst, rows, sums);
      add_group(w, half * 2 + 1, second, Rows::kSumOfSecond, rows, sums);
    }
  }

 private:
  static constexpr BlockPlane kLow = kShape.low();
  static constexpr BlockPlane kHigh = kShape.high();
  static constexpr unsigned kGroups = kShape.groups();
  static constexpr unsigned kKinds = kShape.kinds;

  // The bits of word i of both fragments in a plane whose words begin at `from`, each moved to bit 0 of its byte.
  template <unsigned kBits>
  QUIRE_DEVICE static std::uint32_t plane(const Step& w, unsigned from, unsigned i) {
    constexpr unsigned kOfWord = 8 / kBits;
    constexpr std::uint32_t kMask = ((1u << kBits) - 1) * 0x01010101u;
    return w.codes[from + i / kOfWord] >> i % kOfWord * kBits & kMask;
  }
  // The four words of half a step, as signed bytes.
  QUIRE_DEVICE static void codes(const Step& w, unsigned half, std::uint32_t (&out)[4]) {
    if constexpr (kShape.has_table) {
      constexpr std::uint64_t kFirst = kShape.values[0];
      constexpr std::uint64_t kLast = kShape.values[1];
      QUIRE_UNROLLED for (unsigned i = 0; i < 2; ++i) {
        const TableBytes both = table_bytes(w.codes[half * 2 + i], kFirst, kLast);
        out[i * 2] = both.of_low;
        out[i * 2 + 1] = both.of_high;
      }
    } else {
      constexpr std::uint32_t kZero = kShape.zero;
      QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) {
        std::uint32_t codes = plane<kLow.bits>(w, 0, half * 4 + i);
        if constexpr (kHigh.bits != 0) codes |= plane<kHigh.bits>(w, kLow.bits, half * 4 + i) << kHigh.shift;
        if constexpr (kLow.bits == 8) {
          static_assert(kLow.bits != 8 || kZero == 128);
          out[i] = codes ^ 0x80808080u;
        } else {
          out[i] = kZero == 0 ? codes : bytes_less(codes, kZero);
        }
      }
    }
  }
  QUIRE_DEVICE static float half_of(std::uint32_t word, unsigned upper) {
    const std::uint32_t bits = upper == 0 ? word & 0xffffu : word >> 16;
    return kShape.scales == backend::BlockScales::kBF16 ? f32_of_bits(bits << 16) : f32_of_half(bits);
  }
  // s or m of a group of the step, of output g + 8 · upper.
  QUIRE_DEVICE static float scale(const Step& w, unsigned kind, unsigned group, unsigned upper) {
    if constexpr (!kShape.has_integers()) return half_of(w.scales[kind * kGroups + group], upper);
    const unsigned byte = (kind * kGroups + group) * 2 + upper;
    const std::uint32_t word = w.scales[kKinds + byte / 4];
    const auto integer = static_cast<std::int8_t>(word >> byte % 4 * 8 & 0xffu);
    const float product = half_of(w.scales[kind], upper) * static_cast<float>(integer);
    return kind == 0 ? product : -product;
  }

  template <unsigned kRowTiles>
  QUIRE_DEVICE static void add_group(const Step& w, unsigned group, const std::uint32_t (&words)[4],
                                     Rows::Number codes_of, const Rows (&rows)[kRowTiles], Sum (&sums)[kRowTiles]) {
    float s[2];
    float m[2] = {};
    QUIRE_UNROLLED for (unsigned upper = 0; upper < 2; ++upper) {
      s[upper] = scale(w, 0, group, upper);
      if constexpr (kKinds == 2) m[upper] = scale(w, 1, group, upper);
    }
    QUIRE_UNROLLED for (unsigned r = 0; r < kRowTiles; ++r) {
      IntegerProduct whole;
      std::uint32_t of_rows[2];
      rows[r].put(0, of_rows);
      add_product(whole, words, of_rows);
      float scales[2];
      rows[r].number(Rows::kScale, scales);
      float sums_of_codes[2] = {};
      if constexpr (kKinds == 2) rows[r].number(codes_of, sums_of_codes);
      QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) {
        const float d = static_cast<float>(whole.c[i]) * scales[i % 2];
        float& sum = sums[r].c[i];
        sum = fma(d, s[i / 2], sum);
        if constexpr (kKinds == 2) sum = fma(sums_of_codes[i % 2], m[i / 2], sum);
      }
    }
  }
};

}  // namespace quire::gpu
