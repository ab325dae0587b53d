// Table for AVX2 (with FMA and F16C): 16 lanes are two ymm; tiles of 6 rows by 1 panel or 1 row by 4.
#include <immintrin.h>

#include "core/cpu/isa/kernels.h"
#include "core/sample/exp_constants.h"

namespace quire::cpu {
namespace {

// Eight words of ones, then eight of zeros: n ones start at 8 - n.
alignas(64) constexpr std::uint32_t kMaskWords[16] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0, 0, 0, 0, 0, 0, 0, 0};

// One word in every lane.
__m256i broadcast_word(const void* p) {
  std::int32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return _mm256_set1_epi32(word);
}

struct Vec {
  static constexpr int kTileRows = 6;
  static constexpr int tile_panels(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }

  __m256 a;  // lanes 0..7
  __m256 b;  // lanes 8..15

  static Vec zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Vec broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static Vec load(const float* p, std::uint32_t n) {
    if (n == kLanes) return load(p);
    return {_mm256_maskload_ps(p, low_mask(n)), _mm256_maskload_ps(p + 8, high_mask(n))};
  }
  void store(float* p) const {
    _mm256_storeu_ps(p, a);
    _mm256_storeu_ps(p + 8, b);
  }
  void store(float* p, std::uint32_t n) const {
    if (n == kLanes) return store(p);
    _mm256_maskstore_ps(p, low_mask(n), a);
    _mm256_maskstore_ps(p + 8, high_mask(n), b);
  }
  // Stores integers as 8 bits each.
  void store_codes(std::int8_t* p) const {
    const __m256i pairs = _mm256_packs_epi32(_mm256_cvtps_epi32(a), _mm256_cvtps_epi32(b));  // a b a b, four each
    const __m256i in_order = _mm256_permute4x64_epi64(pairs, 0xd8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(in_order), _mm256_extracti128_si256(in_order, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }

  // 16 words: the bf16 in the low or high half of each.
  static Vec bf16_low(const void* p) {
    const auto* words = static_cast<const __m256i*>(p);
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256(words), 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256(words + 1), 16))};
  }
  static Vec bf16_high(const void* p) {
    const auto* words = static_cast<const __m256i*>(p);
    const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    return {_mm256_castsi256_ps(_mm256_and_si256(_mm256_loadu_si256(words), high)),
            _mm256_castsi256_ps(_mm256_and_si256(_mm256_loadu_si256(words + 1), high))};
  }
  // 16 halves in order.
  static Vec bf16(const void* p) {
    const auto* halves = static_cast<const __m128i*>(p);
    const auto widen = [](__m128i h) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); };
    return {widen(_mm_loadu_si128(halves)), widen(_mm_loadu_si128(halves + 1))};
  }
  static Vec f16(const void* p) {
    const auto* halves = static_cast<const __m128i*>(p);
    return {_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
  }
  // 16 integers of 8 bits; and of 4 bits, that of k + s in each of 16 words.
  static Vec int8(const void* p) {
    const auto* codes = static_cast<const unsigned char*>(p);
    const auto widen = [](const unsigned char* eight) {
      return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(eight))));
    };
    return {widen(codes), widen(codes + 8)};
  }
  static Vec int4(const void* p, std::uint32_t s) {
    const auto* words = static_cast<const __m256i*>(p);
    const auto code = [=](__m256i w) {
      return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(w, static_cast<int>(28 - kInt4Shift[s])), 28));
    };
    return {code(_mm256_loadu_si256(words)), code(_mm256_loadu_si256(words + 1))};
  }
  // 16 bytes: e4m3fn moved to an f16's bits, where it is 2^8 too small; and the four bits from `shift` on.
  static Vec fp8(const void* p) {
    const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(p)));
    const __m256i halves = _mm256_and_si256(_mm256_slli_epi16(wide, 7), _mm256_set1_epi16(kFp8Bits));
    const __m256i size = _mm256_and_si256(halves, _mm256_set1_epi16(0x7fff));
    const __m256i is_nan = _mm256_cmpeq_epi16(size, _mm256_set1_epi16(kFp8NaN));
    const __m256i faulty = _mm256_add_epi16(halves, _mm256_and_si256(is_nan, _mm256_set1_epi16(kFp8ToF16NaN)));
    const Vec small = {_mm256_cvtph_ps(_mm256_castsi256_si128(faulty)),
                       _mm256_cvtph_ps(_mm256_extracti128_si256(faulty, 1))};
    return small * broadcast(256.0f);
  }
  static Vec nibbles(const void* p, std::uint32_t shift) {
    const auto* codes = static_cast<const unsigned char*>(p);
    const auto widen = [=](const unsigned char* eight) {
      const __m256i words = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(eight)));
      const __m256i shifted = _mm256_srli_epi32(words, static_cast<int>(shift));
      return _mm256_cvtepi32_ps(_mm256_and_si256(shifted, _mm256_set1_epi32(15)));
    };
    return {widen(codes), widen(codes + 8)};
  }
  // 16 bytes: as the table of 16 has the four bits from `shift` on.
  static Vec of_table(const void* p, std::uint32_t shift, const float* table) {
    const auto* codes = static_cast<const unsigned char*>(p);
    const __m256 low = _mm256_loadu_ps(table);
    const __m256 high = _mm256_loadu_ps(table + 8);
    const auto look_up = [=](const unsigned char* eight) {
      const __m256i words = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(eight)));
      const __m256i code = _mm256_srli_epi32(words, static_cast<int>(shift));
      const __m256 is_high = _mm256_castsi256_ps(_mm256_slli_epi32(code, 28));  // by its sign
      return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, code), _mm256_permutevar8x32_ps(high, code), is_high);
    };
    return {look_up(codes), look_up(codes + 8)};
  }
  // The bf16 in the low or high half of one word, in every lane.
  static Vec every_bf16_low(const void* p) {
    const __m256 v = _mm256_castsi256_ps(_mm256_slli_epi32(broadcast_word(p), 16));
    return {v, v};
  }
  static Vec every_bf16_high(const void* p) {
    const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    const __m256 v = _mm256_castsi256_ps(_mm256_and_si256(broadcast_word(p), high));
    return {v, v};
  }

  // Lane i of row j becomes lane j of row i, by blocks of eight.
  static void transpose(Vec (&rows)[16]) {
    __m256 block[8];
    __m256 other[8];
    const auto take = [&](__m256(&to)[8], int first, __m256 Vec::*half) {
      for (int i = 0; i < 8; ++i) to[i] = rows[first + i].*half;
      transpose_eight(to);
    };
    const auto put = [&](const __m256(&from)[8], int first, __m256 Vec::*half) {
      for (int i = 0; i < 8; ++i) rows[first + i].*half = from[i];
    };
    take(block, 0, &Vec::a);
    put(block, 0, &Vec::a);
    take(block, 8, &Vec::b);
    put(block, 8, &Vec::b);
    take(block, 0, &Vec::b);
    take(other, 8, &Vec::a);
    put(block, 8, &Vec::a);
    put(other, 0, &Vec::b);
  }
  static void transpose_eight(__m256 (&rows)[8]) {
    __m256 pairs[8];
    for (int i = 0; i < 8; i += 2) {
      pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    }
    __m256 fours[8];  // [4i + j]: in half h, column 4h + j of rows 4i to 4i + 3
    for (int i = 0; i < 8; i += 4) {
      fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
      fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
      fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
      fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
    }
    for (int j = 0; j < 4; ++j) {
      rows[j] = _mm256_permute2f128_ps(fours[j], fours[4 + j], 0x20);
      rows[4 + j] = _mm256_permute2f128_ps(fours[j], fours[4 + j], 0x31);
    }
  }

  static Vec fma(Vec x, Vec y, Vec z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
  // *this = fma(x, y, *this), in place: with all sixteen registers in use, g++ 12, left to choose the form of the
  // instruction, moves accumulators about and spills (bf16, 6 rows: 90 instead of 125 GFLOP/s).
  void add_product(Vec x, Vec y) {
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(a) : "x"(x.a), "x"(y.a));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(b) : "x"(x.b), "x"(y.b));
  }
  static Vec max(Vec x, Vec y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  static Vec min(Vec x, Vec y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
  Vec negated() const {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_xor_ps(a, sign), _mm256_xor_ps(b, sign)};
  }
  friend Vec operator+(Vec x, Vec y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  friend Vec operator-(Vec x, Vec y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  friend Vec operator*(Vec x, Vec y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  friend Vec operator/(Vec x, Vec y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }

  // Lanes [first, last) of x, the others of y.
  // a where x > 0, else b.
  static Vec where_positive(Vec x, Vec a, Vec b) {
    const __m256 zero = _mm256_setzero_ps();
    return {_mm256_blendv_ps(b.a, a.a, _mm256_cmp_ps(x.a, zero, _CMP_GT_OQ)),
            _mm256_blendv_ps(b.b, a.b, _mm256_cmp_ps(x.b, zero, _CMP_GT_OQ))};
  }
  static Vec keep(Vec x, std::uint32_t first, std::uint32_t last, Vec y) {
    const __m256i low = _mm256_andnot_si256(low_mask(first), low_mask(last));
    const __m256i high = _mm256_andnot_si256(high_mask(first), high_mask(last));
    return {_mm256_blendv_ps(y.a, x.a, _mm256_castsi256_ps(low)),
            _mm256_blendv_ps(y.b, x.b, _mm256_castsi256_ps(high))};
  }

  float first() const { return _mm256_cvtss_f32(a); }
  // Adds lanes l and l+8, then l and l+4, l and l+2, l and l+1.
  float sum() const {
    const __m256 eight = _mm256_add_ps(a, b);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  float largest() const {
    const __m256 eight = _mm256_max_ps(a, b);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  // p * 2^n, n in the low bits of t = n + kExpMagic, in two steps (core/sample/math.h).
  static Vec times_power_of_two(Vec p, Vec t) { return {scaled(p.a, t.a), scaled(p.b, t.b)}; }

 private:
  static __m256i low_mask(std::uint32_t n) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMaskWords + (n < 8 ? 8 - n : 0)));
  }
  static __m256i high_mask(std::uint32_t n) { return low_mask(n < 8 ? 0 : n - 8); }

  static __m256 power_of_two(__m256i n) {
    const __m256i bias = _mm256_set1_epi32(static_cast<int>(sample::kExpBias));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, bias), sample::kExpFractionBits));
  }
  static __m256 scaled(__m256 p, __m256 t) {
    const __m256i magic = _mm256_set1_epi32(static_cast<int>(sample::kExpMagicBits));
    const __m256i whole = _mm256_sub_epi32(_mm256_castps_si256(t), magic);
    const __m256i half = _mm256_srai_epi32(whole, 1);
    return _mm256_mul_ps(_mm256_mul_ps(p, power_of_two(half)), power_of_two(_mm256_sub_epi32(whole, half)));
  }
};

// Additions of words and of halves, in place for the reason of Vec::add_product.
void add_words(__m256i& sums, __m256i terms) { __asm__("vpaddd %1, %0, %0" : "+x"(sums) : "x"(terms)); }
void add_halves(__m256i& sums, __m256i terms) { __asm__("vpaddw %1, %0, %0" : "+x"(sums) : "x"(terms)); }

// Integer sums (gemm_integer.inc); pairs of products are added in 16 bits first.
struct Dot8 {
  static constexpr int kTileRows = 4;
  static constexpr int tile_panels(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }

  __m256i a;
  __m256i b;

  struct Codes {
    __m256i a;
    __m256i b;
  };
  static Codes load(const unsigned char* p) {
    const auto* words = reinterpret_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(words), _mm256_loadu_si256(words + 1)};
  }

  static std::int32_t start_of(std::int32_t) { return 0; }
  static Dot8 start(const std::int32_t*) { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  // Two products of 127 * 127 fit into 16 bits, four do not.
  static __m256i products(__m256i codes, __m256i values) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(values, codes));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  }
  void add(const Codes& codes, const std::int8_t* x) {
    const __m256i values = broadcast_word(x);
    add_words(a, products(codes.a, values));
    add_words(b, products(codes.b, values));
  }
  Vec f32() const { return {_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b)}; }
};

// Sums of 16 products stay in 16 bits: gemm_integer.inc.
struct Dot4 {
  static constexpr int kTileRows = 4;
  static constexpr int tile_panels(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }

  __m256i a;
  __m256i b;

  struct Codes {
    __m256i low_a, high_a, low_b, high_b;
  };
  static Codes load(const unsigned char* p) {
    const __m256i eights = _mm256_set1_epi8(8);
    const __m256i mask = _mm256_set1_epi8(15);
    const auto* words = reinterpret_cast<const __m256i*>(p);
    const auto low = [=](__m256i w) { return _mm256_and_si256(_mm256_xor_si256(w, eights), mask); };
    const __m256i first = _mm256_loadu_si256(words);
    const __m256i second = _mm256_loadu_si256(words + 1);
    return {low(first), low(_mm256_srli_epi32(first, 4)), low(second), low(_mm256_srli_epi32(second, 4))};
  }

  static std::int32_t start_of(std::int32_t sum) { return static_cast<std::int32_t>((-4u * sum & 0xffffu) * 0x10001u); }
  static Dot4 start(const std::int32_t* word) { return {_mm256_set1_epi32(*word), _mm256_set1_epi32(*word)}; }
  void add(const Codes& codes, const std::int8_t* x) {
    const __m256i low = broadcast_word(x);
    const __m256i high = broadcast_word(x + 4);
    add_halves(a, _mm256_maddubs_epi16(codes.low_a, low));
    add_halves(b, _mm256_maddubs_epi16(codes.low_b, low));
    add_halves(a, _mm256_maddubs_epi16(codes.high_a, high));
    add_halves(b, _mm256_maddubs_epi16(codes.high_b, high));
  }
  Vec f32() const {
    const __m256i ones = _mm256_set1_epi16(1);
    return {_mm256_cvtepi32_ps(_mm256_madd_epi16(a, ones)), _mm256_cvtepi32_ps(_mm256_madd_epi16(b, ones))};
  }
};

#include "core/cpu/isa/blocks/block_dot_avx2.inc"
#include "core/cpu/isa/emulated_pairs.inc"
#include "core/cpu/isa/exp.inc"
#include "core/cpu/isa/gemm.inc"
#include "core/cpu/isa/quantize_row.inc"
#include "core/cpu/isa/rows.inc"
#include "core/cpu/isa/span.inc"
#include "core/cpu/isa/table.inc"

constexpr Kernels kTable = make_table("avx2");

}  // namespace

const Kernels* kernels_avx2() { return &kTable; }

}  // namespace quire::cpu
