// How many floating-point operations a second this machine's cores can do: f32 fused multiply-adds on values in registers.
// Thread  any; starts threads of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quire::tools {

std::string fma_width();  // "avx512", "avx2" or "scalar": the widest there is

// Operations a second (a multiply-add is two) of `num_threads` threads together, one figure a run.
std::vector<double> measure_fma_peak(std::uint32_t num_threads, std::uint32_t runs);

}  // namespace quire::tools
