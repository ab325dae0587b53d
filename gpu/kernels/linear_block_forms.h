// Blocks that the tensor cores multiply, as the forms of linear_forms.h: those of files times int8, those of FP8 times
// bf16.
// Order   of a slice's sum, beginning with +0:
//           blocks, times int8     for each group j an integer d; then sum = fma(d · xs, s, sum) and, with minima,
//                                  sum = fma(the row's codes · xs, m, sum): StepOps::multiply, slice by slice
//           fp8 in groups          for each 32 inputs a chain d of two products; then sum = fma(d, s, sum)
// Shape   as linear_forms.h.
// Source  ours.
#pragma once

#include "gpu/kernels/linear_forms.h"

namespace quire::gpu {

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
