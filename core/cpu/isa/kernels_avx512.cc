// The AVX-512 table (F, BW, DQ, VL): 16 lanes are one zmm; tiles of 6 rows by 4 panels or 12 by 2 (24 accumulators).
#include <immintrin.h>

#include "core/cpu/isa/kernels.h"
#include "core/sample/exp_constants.h"

namespace quire::cpu {
namespace {

struct Vec {
  static constexpr int kTileRows = 12;
  static constexpr int tile_panels(int rows) { return rows <= 6 ? 4 : 2; }

  __m512 v;

  static Vec zero() { return {_mm512_setzero_ps()}; }
  static Vec broadcast(float x) { return {_mm512_set1_ps(x)}; }
  static Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vec load(const float* p, std::uint32_t n) { return {_mm512_maskz_loadu_ps(mask(n), p)}; }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void store(float* p, std::uint32_t n) const { _mm512_mask_storeu_ps(p, mask(n), v); }

  // 16 words: the bf16 in the low or high half of each.
  static Vec bf16_low(const void* p) { return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16))}; }
  static Vec bf16_high(const void* p) {
    const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), high))};
  }
  // 16 halves in order.
  static Vec bf16(const void* p) {
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(words, 16))};
  }
  static Vec f16(const void* p) { return {_mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)))}; }
  // 16 whole numbers of 8 bits; and of 4, the s-th from below in each of 16 words.
  static Vec int8(const void* p) {
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p))))};
  }
  static Vec int4(const void* p, std::uint32_t s) {
    // The permutation looks at the low four bits of each word alone.
    const __m512 values = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
    return {_mm512_permutexvar_ps(_mm512_srli_epi32(_mm512_loadu_si512(p), 4 * s), values)};
  }

  static Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  void add_product(Vec a, Vec b) { *this = fma(a, b, *this); }
  static Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
  static Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
  Vec negated() const {
    const __m512i sign = _mm512_set1_epi32(static_cast<int>(0x80000000u));
    return {_mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(v), sign))};
  }
  friend Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }

  // Lanes [first, last) of a, the others of b.
  static Vec keep(Vec a, std::uint32_t first, std::uint32_t last, Vec b) {
    return {_mm512_mask_blend_ps(static_cast<__mmask16>(mask(last) & ~mask(first)), b.v, a.v)};
  }

  float first() const { return _mm512_cvtss_f32(v); }
  // Lanes l and l+8, then l and l+4, l and l+2, l and l+1.
  float sum() const {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  float largest() const {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  // p * 2^n, n in the low bits of t = n + kExpMagic, in two steps (core/sample/math.h).
  static Vec times_power_of_two(Vec p, Vec t) {
    const __m512i magic = _mm512_set1_epi32(static_cast<int>(sample::kExpMagicBits));
    const __m512i whole = _mm512_sub_epi32(_mm512_castps_si512(t.v), magic);
    const __m512i half = _mm512_srai_epi32(whole, 1);
    return (p * power_of_two(half)) * power_of_two(_mm512_sub_epi32(whole, half));
  }

 private:
  static __mmask16 mask(std::uint32_t n) { return static_cast<__mmask16>((1u << n) - 1u); }
  static Vec power_of_two(__m512i n) {
    const __m512i bias = _mm512_set1_epi32(static_cast<int>(sample::kExpBias));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, bias), sample::kExpFractionBits))};
  }
};

#include "core/cpu/isa/exp.inc"
#include "core/cpu/isa/gemm.inc"
#include "core/cpu/isa/rows.inc"
#include "core/cpu/isa/span.inc"
#include "core/cpu/isa/table.inc"

constexpr Kernels kTable = make_table("avx512");

}  // namespace

const Kernels* kernels_avx512() { return &kTable; }

}  // namespace quire::cpu
