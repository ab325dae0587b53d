// Scalar table: the reference, for any machine. Sixteen lanes are sixteen floats; fma is the C library's: exact.
#include <xmmintrin.h>

#include "core/base/float_bits.h"
#include "core/cpu/isa/kernels.h"
#include "core/sample/math.h"

namespace quire::cpu {
namespace {

struct Vec {
  static constexpr int kTileRows = 2;
  static constexpr int tile_panels(int) { return 1; }

  float v[kLanes];

  template <typename Lane>
  static Vec each(Lane lane) {
    Vec out;
    for (std::uint32_t i = 0; i < kLanes; ++i) out.v[i] = lane(i);
    return out;
  }
  template <typename T>
  static T word(const void* p, std::uint32_t i) {
    T bits;
    __builtin_memcpy(&bits, static_cast<const unsigned char*>(p) + i * sizeof(T), sizeof(T));
    return bits;
  }

  static Vec zero() { return broadcast(0.0f); }
  static Vec broadcast(float x) {
    return each([=](std::uint32_t) { return x; });
  }
  static Vec load(const float* p) { return load(p, kLanes); }
  static Vec load(const float* p, std::uint32_t n) {
    return each([=](std::uint32_t i) { return i < n ? p[i] : 0.0f; });
  }
  void store(float* p) const { store(p, kLanes); }
  void store(float* p, std::uint32_t n) const {
    for (std::uint32_t i = 0; i < n; ++i) p[i] = v[i];
  }
  // Stores integers as 8 bits each.
  void store_codes(std::int8_t* p) const {
    for (std::uint32_t i = 0; i < kLanes; ++i) p[i] = static_cast<std::int8_t>(v[i]);
  }

  // 16 words: the bf16 in the low or high half of each.
  static Vec bf16_low(const void* p) {
    return each([=](std::uint32_t i) { return f32_of_bf16(word<std::uint16_t>(p, 2 * i)); });
  }
  static Vec bf16_high(const void* p) {
    return each([=](std::uint32_t i) { return f32_of_bf16(word<std::uint16_t>(p, 2 * i + 1)); });
  }
  // 16 halves in order.
  static Vec bf16(const void* p) {
    return each([=](std::uint32_t i) { return f32_of_bf16(word<std::uint16_t>(p, i)); });
  }
  static Vec f16(const void* p) {
    return each([=](std::uint32_t i) { return f32_of_f16(word<std::uint16_t>(p, i)); });
  }
  // 16 integers of 8 bits; and of 4 bits, that of k + s in each of 16 words.
  static Vec int8(const void* p) {
    return each([=](std::uint32_t i) { return static_cast<float>(word<std::int8_t>(p, i)); });
  }
  static Vec int4(const void* p, std::uint32_t s) {
    return each([=](std::uint32_t i) {
      return static_cast<float>(static_cast<std::int32_t>(word<std::uint32_t>(p, i) << (28 - kInt4Shift[s])) >> 28);
    });
  }
  // 16 bytes: e4m3fn; and the four bits from `shift` on.
  static Vec fp8(const void* p) {
    return each([=](std::uint32_t i) { return f32_of_fp8(word<std::uint8_t>(p, i)); });
  }
  static Vec nibbles(const void* p, std::uint32_t shift) {
    return each([=](std::uint32_t i) { return static_cast<float>(word<std::uint8_t>(p, i) >> shift & 15); });
  }
  // 16 bytes: as the table of 16 has the four bits from `shift` on.
  static Vec of_table(const void* p, std::uint32_t shift, const float* table) {
    return each([=](std::uint32_t i) { return table[word<std::uint8_t>(p, i) >> shift & 15]; });
  }
  // The bf16 in the low or high half of one word, in every lane.
  static Vec every_bf16_low(const void* p) { return broadcast(f32_of_bf16(word<std::uint16_t>(p, 0))); }
  static Vec every_bf16_high(const void* p) { return broadcast(f32_of_bf16(word<std::uint16_t>(p, 1))); }

  static void transpose(Vec (&rows)[kLanes]) {
    for (std::uint32_t i = 0; i < kLanes; ++i) {
      for (std::uint32_t j = 0; j < i; ++j) {
        const float below = rows[i].v[j];
        rows[i].v[j] = rows[j].v[i];
        rows[j].v[i] = below;
      }
    }
  }

  static Vec fma(const Vec& a, const Vec& b, const Vec& c) {
    return each([&](std::uint32_t i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
  }
  void add_product(const Vec& a, const Vec& b) { *this = fma(a, b, *this); }
  static Vec min(const Vec& a, const Vec& b) {
    return each([&](std::uint32_t i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  static Vec max(const Vec& a, const Vec& b) {
    return each([&](std::uint32_t i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  Vec negated() const {
    return each([&](std::uint32_t i) { return -v[i]; });
  }
  friend Vec operator+(const Vec& a, const Vec& b) {
    return each([&](std::uint32_t i) { return a.v[i] + b.v[i]; });
  }
  friend Vec operator-(const Vec& a, const Vec& b) {
    return each([&](std::uint32_t i) { return a.v[i] - b.v[i]; });
  }
  friend Vec operator*(const Vec& a, const Vec& b) {
    return each([&](std::uint32_t i) { return a.v[i] * b.v[i]; });
  }
  friend Vec operator/(const Vec& a, const Vec& b) {
    return each([&](std::uint32_t i) { return a.v[i] / b.v[i]; });
  }
  // Lanes [first, last) of a, the others of b.
  // a where x > 0, else b.
  static Vec where_positive(const Vec& x, const Vec& a, const Vec& b) {
    return each([&](std::uint32_t i) { return x.v[i] > 0.0f ? a.v[i] : b.v[i]; });
  }
  static Vec keep(const Vec& a, std::uint32_t first, std::uint32_t last, const Vec& b) {
    return each([&](std::uint32_t i) { return i >= first && i < last ? a.v[i] : b.v[i]; });
  }

  float first() const { return v[0]; }
  // Adds lanes l and l+8, then l and l+4, l and l+2, l and l+1.
  float sum() const {
    Vec t = *this;
    for (std::uint32_t half = kLanes / 2; half != 0; half /= 2) {
      for (std::uint32_t i = 0; i < half; ++i) t.v[i] = t.v[i] + t.v[i + half];
    }
    return t.v[0];
  }
  float largest() const {
    Vec t = *this;
    for (std::uint32_t half = kLanes / 2; half != 0; half /= 2) {
      for (std::uint32_t i = 0; i < half; ++i) t.v[i] = t.v[i] > t.v[i + half] ? t.v[i] : t.v[i + half];
    }
    return t.v[0];
  }
};

Vec exp_lanes(const Vec& x) {
  return Vec::each([&](std::uint32_t i) { return sample::exp_f32(x.v[i]); });
}

Vec expm1_lanes(const Vec& x) {
  return Vec::each([&](std::uint32_t i) { return sample::expm1_f32(x.v[i]); });
}

Vec tanh_lanes(const Vec& x) {
  return Vec::each([&](std::uint32_t i) { return sample::tanh_f32(x.v[i]); });
}

Vec gelu_lanes(const Vec& x) {
  return Vec::each([&](std::uint32_t i) { return sample::gelu_f32(x.v[i]); });
}

// Integer sums (gemm_integer.inc): kCodes k's in a word.
template <typename Word, std::uint32_t kCodes>
struct Dot {
  static constexpr int kTileRows = 2;
  static constexpr int tile_panels(int) { return 1; }

  std::int32_t v[kLanes];

  static std::int32_t start_of(std::int32_t) { return 0; }
  static Dot start(const std::int32_t*) { return {}; }
  static const unsigned char* load(const unsigned char* p) { return p; }
  void add(const unsigned char* codes, const std::int8_t* x) {
    for (std::uint32_t i = 0; i < kLanes; ++i) {
      for (std::uint32_t s = 0; s < kCodes; ++s) v[i] += Word::code(codes + 4 * i, s) * x[s];
    }
  }
  Vec f32() const {
    return Vec::each([&](std::uint32_t i) { return static_cast<float>(v[i]); });
  }
};
struct BytesOfWord {
  static std::int32_t code(const unsigned char* word, std::uint32_t s) { return static_cast<std::int8_t>(word[s]); }
};
struct NibblesOfWord {
  static std::int32_t code(const unsigned char* word, std::uint32_t s) {
    return static_cast<std::int32_t>(Vec::word<std::uint32_t>(word, 0) << (28 - kInt4Shift[s])) >> 28;
  }
};
using Dot8 = Dot<BytesOfWord, 4>;
using Dot4 = Dot<NibblesOfWord, 8>;

// Sums over blocks (blocks/gemm_blocks.inc). Calls, not copies of these loops, which take g++ a minute to vectorise.
struct Words {
  unsigned char v[kLanes * 4];

  static Words load(const unsigned char* p) {
    Words out;
    __builtin_memcpy(out.v, p, sizeof(out.v));
    return out;
  }
  [[gnu::noinline]] Words bits(std::uint32_t from, std::uint32_t to, std::uint32_t mask) const {
    Words out;
    for (std::uint32_t i = 0; i < sizeof(v); ++i) out.v[i] = static_cast<unsigned char>((v[i] >> from & mask) << to);
    return out;
  }
  [[gnu::noinline]] friend Words operator|(const Words& a, const Words& b) {
    Words out;
    for (std::uint32_t i = 0; i < sizeof(v); ++i) out.v[i] = a.v[i] | b.v[i];
    return out;
  }
  [[gnu::noinline]] Words valued(const std::uint8_t* values) const {
    Words out;
    for (std::uint32_t i = 0; i < sizeof(v); ++i) out.v[i] = values[v[i]];
    return out;
  }
  [[gnu::noinline]] Vec numbers(int b) const {
    return Vec::each([&](std::uint32_t i) { return static_cast<float>(v[4 * i + static_cast<std::uint32_t>(b)]); });
  }
};
struct BlockDot {
  static constexpr int kTileRows = 1;
  static constexpr int tile_panels(int) { return 1; }
  static constexpr std::int32_t kWideZero = 128;

  std::int32_t v[kLanes];

  static BlockDot start(const std::int32_t* word) {
    BlockDot out;
    for (std::int32_t& lane : out.v) lane = *word;
    return out;
  }
  [[gnu::noinline]] void add(const Words& first, const Words& second, const std::int8_t* x) {
    for (std::uint32_t i = 0; i < kLanes; ++i) {
      for (std::uint32_t s = 0; s < 4; ++s) v[i] += first.v[4 * i + s] * x[s] + second.v[4 * i + s] * x[4 + s];
    }
  }
  void add_wide(const Words& first, const Words& second, const std::int8_t* x) { add(first, second, x); }
  Vec f32() const {
    return Vec::each([&](std::uint32_t i) { return static_cast<float>(v[i]); });
  }
};

#include "core/cpu/isa/emulated_pairs.inc"
#include "core/cpu/isa/gemm.inc"
#include "core/cpu/isa/quantize_row.inc"
#include "core/cpu/isa/rows.inc"
#include "core/cpu/isa/span.inc"
#include "core/cpu/isa/table.inc"

constexpr Kernels kTable = make_table("scalar");

}  // namespace

const Kernels* kernels_scalar() { return &kTable; }

}  // namespace quire::cpu
