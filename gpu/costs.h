// What a kernel of a linear layer moves and computes, for predictions and to set measurements against.
// Shape   bytes read and written, each once where the second cache can hold it between its readers; a product and a sum are two flops.
// Thread  any; pure.
// Source  ours.
#pragma once

#include <cstdint>

#include "core/backend/tensors.h"
#include "gpu/kernels/linear.h"

namespace quire::gpu {

struct Cost {
  double bytes = 0.0;
  double flops = 0.0;
};

// The product alone: weights, prepared rows, the result, and sums that parts keep.
Cost linear_cost(backend::WeightType type, std::uint32_t n, std::uint32_t k, std::uint32_t rows,
                 Finish finish = Finish::kStore);

// Rows prepared for the tensor cores, before it: f32 in, bf16 or whole numbers with their scales out. Nothing for f32 and f16.
Cost linear_rows_cost(backend::WeightType type, std::uint32_t k, std::uint32_t rows, bool with_norm);

}  // namespace quire::gpu
