// Table for AVX-512 with VNNI and BF16: the VNNI table, with pairs of bf16 products as one instruction.
#include <immintrin.h>

#include "core/cpu/isa/kernels.h"
#include "core/sample/exp_constants.h"

namespace quire::cpu {
namespace {

#include "core/cpu/isa/dot_vnni.inc"

// vdpbf16ps adds the odd k of a pair first and treats subnormals as zero, whatever the mode (gemm_pairs.inc).
struct Pairs {
  static constexpr int kTileRows = Vec::kTileRows;
  static constexpr int tile_panels(int rows) { return Vec::tile_panels(rows); }
  static constexpr std::size_t kRowBytes = 2 * sizeof(std::uint16_t);

  __m512i v;

  static Pairs load(const unsigned char* p) { return {_mm512_loadu_si512(p)}; }
  // In place, as in vpdpbusd.
  void add_to(Vec& sum, const std::int8_t* x) const {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum.v) : "v"(v), "v"(broadcast_word(x)));
  }
};

// As in emulated_pairs.inc, but in 16 bits.
void round_row(const float* x, std::size_t n, std::int8_t* out) {
  const std::size_t padded = (n + 1) / 2 * 2;
  for (std::size_t i = 0; i < padded; i += kLanes) {
    const auto left = [i](std::size_t end) { return end - i < kLanes ? static_cast<std::uint32_t>(end - i) : kLanes; };
    const __m256bh rounded = _mm512_cvtneps_pbh(Vec::load(x + i, i < n ? left(n) : 0).v);
    const auto mask = static_cast<__mmask16>((1u << left(padded)) - 1u);
    _mm256_mask_storeu_epi16(out + 2 * i, mask, reinterpret_cast<const __m256i&>(rounded));
  }
}

#include "core/cpu/isa/gemm.inc"

Kernels make_table() {
  Kernels table = *kernels_avx512vnni();
  table.name = "avx512bf16";
  table.gemm[kGemmW16A16] = gemm_w16a16;
  table.round_row = round_row;
  return table;
}

}  // namespace

const Kernels* kernels_avx512bf16() {
  static const Kernels table = make_table();
  return &table;
}

}  // namespace quire::cpu
