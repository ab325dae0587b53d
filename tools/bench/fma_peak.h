// Peak arithmetic of this machine's cores: f32 fused multiply-adds per second on values in registers.
// Thread  any; starts threads of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quire::tools {

std::string fma_width();  // "avx512", "avx2" or "scalar": the widest that this machine has

// Operations per second (a multiply-add is two) of `num_threads` threads together, one figure per run.
std::vector<double> measure_fma_peak(std::uint32_t num_threads, std::uint32_t runs);

}  // namespace quire::tools
