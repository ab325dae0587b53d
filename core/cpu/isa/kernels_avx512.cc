// The AVX-512 table (F, BW, DQ, VL).
#include <immintrin.h>

#include "core/cpu/isa/kernels.h"
#include "core/sample/exp_constants.h"

namespace quire::cpu {
namespace {

#include "core/cpu/isa/vec_avx512.inc"

#include "core/cpu/isa/exp.inc"
#include "core/cpu/isa/gemm.inc"
#include "core/cpu/isa/rows.inc"
#include "core/cpu/isa/span.inc"
#include "core/cpu/isa/table.inc"

constexpr Kernels kTable = make_table("avx512");

}  // namespace

const Kernels* kernels_avx512() { return &kTable; }

}  // namespace quire::cpu
