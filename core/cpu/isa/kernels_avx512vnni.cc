// The table of AVX-512 with VNNI: as the AVX-512 table, but products of whole numbers are one instruction.
#include <immintrin.h>

#include "core/cpu/isa/kernels.h"
#include "core/sample/exp_constants.h"

namespace quire::cpu {
namespace {

#include "core/cpu/isa/vec_avx512.inc"

// sums += products, in place: g++ 12 left to itself moves accumulators about and spills.
[[gnu::always_inline]] inline void add_products(__m512i& sums, __m512i codes, const std::int8_t* x) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(codes), "v"(broadcast_word(x)));
}

// Sums of whole numbers (gemm_integer.inc). The instruction takes weights without a sign, their codes and 128 or 8: what
// that is too much is taken off before.
struct Dot8 {
  static constexpr int kTileRows = Vec::kTileRows;
  static constexpr int tile_panels(int rows) { return Vec::tile_panels(rows); }

  __m512i v;

  static __m512i load(const unsigned char* p) {
    return _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(-128));
  }

  static std::int32_t start_of(std::int32_t sum) { return -128 * sum; }
  static Dot8 start(const std::int32_t* word) { return {_mm512_set1_epi32(*word)}; }
  void add(__m512i codes, const std::int8_t* x) { add_products(v, codes, x); }
  Vec f32() const { return {_mm512_cvtepi32_ps(v)}; }
};

struct Dot4 {
  static constexpr int kTileRows = Vec::kTileRows;
  static constexpr int tile_panels(int rows) { return Vec::tile_panels(rows); }

  __m512i v;

  static Nibbles load(const unsigned char* p) { return Nibbles::load(p); }

  static std::int32_t start_of(std::int32_t sum) { return -8 * sum; }
  static Dot4 start(const std::int32_t* word) { return {_mm512_set1_epi32(*word)}; }
  void add(const Nibbles& codes, const std::int8_t* x) {
    add_products(v, codes.low, x);
    add_products(v, codes.high, x + 4);
  }
  Vec f32() const { return {_mm512_cvtepi32_ps(v)}; }
};

#include "core/cpu/isa/exp.inc"
#include "core/cpu/isa/gemm.inc"
#include "core/cpu/isa/quantize_row.inc"
#include "core/cpu/isa/rows.inc"
#include "core/cpu/isa/span.inc"
#include "core/cpu/isa/table.inc"

constexpr Kernels kTable = make_table("avx512vnni");

}  // namespace

const Kernels* kernels_avx512vnni() { return &kTable; }

}  // namespace quire::cpu
