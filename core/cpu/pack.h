// Row-major matrices into panels, in fewer bits where asked (quantize.h), and a row of a packed table back out of them.
// Thread  pack_weight: any, outside steps; it shares the panels out over the team.
// Fails   StartError: out of memory. Matrices of different k or dtype: CHECK.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/backend/tensors.h"
#include "core/cpu/parallel_for.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {

// bias: empty, or one span per matrix (an empty one: none for that matrix).
std::unique_ptr<PackedWeight> pack_weight(std::span<const backend::HostMatrix> matrices,
                                          std::span<const std::span<const float>> biases, backend::Quantize quantize,
                                          Team& team);

// out[i] = w[row, i] widened to f32, i in [0, k); where it is quantised, code * scale.
void unpack_row(const PackedWeight& w, std::uint32_t row, float* out);

}  // namespace quire::cpu
