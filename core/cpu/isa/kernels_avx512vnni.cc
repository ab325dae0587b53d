// Table for AVX-512 with VNNI: the AVX-512 table, with integer products as one instruction.
#include <immintrin.h>

#include "core/cpu/isa/kernels.h"
#include "core/sample/exp_constants.h"

namespace quire::cpu {
namespace {

#include "core/cpu/isa/dot_vnni.inc"
#include "core/cpu/isa/emulated_pairs.inc"
#include "core/cpu/isa/gemm.inc"
#include "core/cpu/isa/quantize_row.inc"

Kernels make_table() {
  Kernels table = *kernels_avx512();
  table.name = "avx512vnni";
  table.gemm[kGemmW8A8] = gemm<PanelW8A8>;
  table.gemm[kGemmW4A8] = gemm<PanelW4A8>;
  table.gemm[kGemmBlocks2A8] = gemm<PanelBlocks<2, 0, true>>;
  table.gemm[kGemmBlocks3A8] = gemm<PanelBlocks<3, 0, true>>;
  table.gemm[kGemmBlocks4A8] = gemm<PanelBlocks<4, 0, true>>;
  table.gemm[kGemmBlocks5A8] = gemm<PanelBlocks<5, 0, true>>;
  table.gemm[kGemmBlocks6A8] = gemm<PanelBlocks<6, 0, true>>;
  table.gemm[kGemmBlocks8A8] = gemm<PanelBlocks<8, 0, true>>;
  table.gemm[kGemmBlocksOfTableA8] = gemm<PanelBlocks<4, 32, true>>;
  table.gemm[kGemmBlocksOfTable16A8] = gemm<PanelBlocks<4, 16, true>>;
  table.quantize_row = quantize_row;  // with the start values of this instruction
  table.quantize_runs = quantize_runs;
  return table;
}

}  // namespace

const Kernels* kernels_avx512vnni() {
  static const Kernels table = make_table();
  return &table;
}

}  // namespace quire::cpu
