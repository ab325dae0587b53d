// Cost model of the kernels: bytes moved, operations, and the least time for both. Measurements, predictions and tests
// compare with it.
// Shape   bytes read and written; a byte counts once if the L2 cache can hold it between its readers. A multiply-add is
//         two flops.
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

// Rates of a device: copies, bf16 matrix products, and the cost of a launch.
struct Rates {
  double bytes_per_s = 0.0;
  double flops_per_s = 0.0;
  double launch_s = 0.0;
};
double least_seconds(const Cost& cost, const Rates& rates);

// Least cost of a linear layer's product alone: weights, prepared rows and the result.
Cost linear_cost(backend::Format format, std::uint32_t n, std::uint32_t k, std::uint32_t rows,
                 Finish finish = Finish::kStore);
// Cost of preparing the rows: f32 in, bf16 or int8 with scales out. 0 for f32 and f16 weights.
Cost linear_rows_cost(backend::Format format, std::uint32_t k, std::uint32_t rows, bool with_norm);

Cost norm_cost(std::uint32_t width, std::uint32_t rows);
Cost act_mul_cost(std::uint32_t width, std::uint32_t rows);  // width of the result

// Least cost of a layer's attention: K and V that the rows of a sequence see, read once for all of them, q, and the
// output.
Cost attention_cost(const backend::Batch& batch, const KvLayout& layout, std::uint32_t num_heads, std::uint32_t window);
// Bytes that the units of a plan move: the K and V of each unit, and parts, which are written and read again.
double unit_bytes(const backend::Batch& batch, const AttentionPlan& plan, const KvLayout& layout,
                  std::uint32_t num_heads);

}  // namespace quire::gpu
