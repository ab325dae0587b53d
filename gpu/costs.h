// What kernels move and compute, and the least time that takes: the one model that measurements, predictions and tests hold times against.
// Shape   bytes read and written, each once where the second cache can hold it between its readers; a product and a sum are two flops.
// Thread  any; pure.
// Source  roofline (Williams et al. 2009); the counts are ours.
#pragma once

#include <cstdint>

#include "core/backend/batch.h"
#include "core/backend/tensors.h"
#include "gpu/attention_plan.h"
#include "gpu/device/layout.h"
#include "gpu/kernels/linear.h"

namespace quire::gpu {

struct Cost {
  double bytes = 0.0;
  double flops = 0.0;

  Cost& operator+=(const Cost& other) {
    bytes += other.bytes;
    flops += other.flops;
    return *this;
  }
  friend Cost operator+(Cost a, const Cost& b) { return a += b; }
  friend Cost operator*(double times, const Cost& one) { return {times * one.bytes, times * one.flops}; }
};

// Of copying, and of matrices in bf16; what a kernel costs to begin.
struct Rates {
  double bytes_per_s = 0.0;
  double flops_per_s = 0.0;
  double launch_s = 0.0;
};
double least_seconds(const Cost& cost, const Rates& rates);

// A linear layer's product alone, at its least: weights, prepared rows and the result.
Cost linear_cost(backend::WeightType type, std::uint32_t n, std::uint32_t k, std::uint32_t rows,
                 Finish finish = Finish::kStore);
// Rows prepared for the tensor cores, before it: f32 in, bf16 or whole numbers with their scales out. Nothing for f32 and f16.
Cost linear_rows_cost(backend::WeightType type, std::uint32_t k, std::uint32_t rows, bool with_norm);

Cost norm_cost(std::uint32_t width, std::uint32_t rows);
Cost act_mul_cost(std::uint32_t width, std::uint32_t rows);  // of the result

// Attention of a layer at its least: K and V that a sequence's rows see once for all of them, q, and what comes out.
Cost attention_cost(const backend::Batch& batch, const KvLayout& layout, std::uint32_t num_heads, std::uint32_t window);
// Bytes of K and V that a plan's units read, each for itself, and of parts what is written and read again.
double unit_bytes(const backend::Batch& batch, const AttentionPlan& plan, const KvLayout& layout,
                  std::uint32_t num_heads);

}  // namespace quire::gpu
