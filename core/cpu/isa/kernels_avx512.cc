// Table for AVX-512 (F, BW, DQ, VL).
#include <immintrin.h>

#include "core/cpu/isa/kernels.h"
#include "core/sample/exp_constants.h"

namespace quire::cpu {
namespace {

#include "core/cpu/isa/vec_avx512.inc"

// Additions of words and of halves, in place: g++ 12, left to itself, moves accumulators about and spills.
void add_words(__m512i& sums, __m512i terms) { __asm__("vpaddd %1, %0, %0" : "+v"(sums) : "v"(terms)); }
void add_halves(__m512i& sums, __m512i terms) { __asm__("vpaddw %1, %0, %0" : "+v"(sums) : "v"(terms)); }

// Integer sums (gemm_integer.inc); pairs of products are added in 16 bits first.
struct Dot8 {
  static constexpr int kTileRows = Vec::kTileRows;
  static constexpr int tile_panels(int rows) { return Vec::tile_panels(rows); }

  __m512i v;

  struct Codes {
    __m512i size;
    __mmask64 negative;
  };
  static Codes load(const unsigned char* p) {
    const __m512i codes = _mm512_loadu_si512(p);
    return {_mm512_abs_epi8(codes), _mm512_movepi8_mask(codes)};
  }

  static std::int32_t start_of(std::int32_t) { return 0; }
  static Dot8 start(const std::int32_t*) { return {_mm512_setzero_si512()}; }
  // Two products of 127 * 127 fit into 16 bits, four do not.
  void add(const Codes& codes, const std::int8_t* x) {
    const __m512i values = broadcast_word(x);
    const __m512i signs = _mm512_mask_sub_epi8(values, codes.negative, _mm512_setzero_si512(), values);
    const __m512i pairs = _mm512_maddubs_epi16(codes.size, signs);
    add_words(v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
  }
  Vec f32() const { return {_mm512_cvtepi32_ps(v)}; }
};

// Sums of 16 products stay in 16 bits: gemm_integer.inc.
struct Dot4 {
  static constexpr int kTileRows = Vec::kTileRows;
  static constexpr int tile_panels(int rows) { return Vec::tile_panels(rows); }

  __m512i v;

  static Nibbles load(const unsigned char* p) { return Nibbles::load(p); }

  static std::int32_t start_of(std::int32_t sum) { return static_cast<std::int32_t>((-4u * sum & 0xffffu) * 0x10001u); }
  static Dot4 start(const std::int32_t* word) { return {_mm512_set1_epi32(*word)}; }
  void add(const Nibbles& codes, const std::int8_t* x) {
    add_halves(v, _mm512_maddubs_epi16(codes.low, broadcast_word(x)));
    add_halves(v, _mm512_maddubs_epi16(codes.high, broadcast_word(x + 4)));
  }
  Vec f32() const { return {_mm512_cvtepi32_ps(_mm512_madd_epi16(v, _mm512_set1_epi16(1)))}; }
};

#include "core/cpu/isa/blocks/words_avx512.inc"

// Sums over blocks (blocks/gemm_blocks.inc).
struct BlockDot {
  static constexpr int kTileRows = 4;
  static constexpr int tile_panels(int rows) { return rows == 1 ? 2 : 1; }
  static constexpr std::int32_t kWideZero = 0;

  __m512i v;

  static BlockDot start(const std::int32_t* word) { return {_mm512_set1_epi32(*word)}; }
  // Four products of 63 * 127 fit into 16 bits.
  void add(Words first, Words second, const std::int8_t* x) {
    const __m512i pairs = _mm512_add_epi16(_mm512_maddubs_epi16(first.v, broadcast_word(x)),
                                           _mm512_maddubs_epi16(second.v, broadcast_word(x + 4)));
    add_words(v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
  }
  // Two products of 128 * 127 fit, four do not; the codes are taken with their signs.
  static __m512i wide_products(__m512i words, __m512i x) {
    const __m512i codes = _mm512_xor_si512(words, _mm512_set1_epi8(-128));
    const __m512i signs = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(codes), _mm512_setzero_si512(), x);
    return _mm512_madd_epi16(_mm512_maddubs_epi16(_mm512_abs_epi8(codes), signs), _mm512_set1_epi16(1));
  }
  void add_wide(Words first, Words second, const std::int8_t* x) {
    add_words(v, wide_products(first.v, broadcast_word(x)));
    add_words(v, wide_products(second.v, broadcast_word(x + 4)));
  }
  Vec f32() const { return {_mm512_cvtepi32_ps(v)}; }
};

#include "core/cpu/isa/emulated_pairs.inc"
#include "core/cpu/isa/exp.inc"
#include "core/cpu/isa/gemm.inc"
#include "core/cpu/isa/quantize_row.inc"
#include "core/cpu/isa/rows.inc"
#include "core/cpu/isa/span.inc"
#include "core/cpu/isa/table.inc"

constexpr Kernels kTable = make_table("avx512");

}  // namespace

const Kernels* kernels_avx512() { return &kTable; }

}  // namespace quire::cpu
