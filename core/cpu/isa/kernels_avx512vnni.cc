// The table of AVX-512 with VNNI: as the AVX-512 table, but products of whole numbers are one instruction.
#include <immintrin.h>

#include "core/cpu/isa/kernels.h"
#include "core/sample/exp_constants.h"

namespace quire::cpu {
namespace {

#include "core/cpu/isa/dot_vnni.inc"
#include "core/cpu/isa/emulated_pairs.inc"
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
