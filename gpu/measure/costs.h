// What a kernel has to move and to multiply, and the least time that takes: max(bytes / R, flops / F) and what it costs to begin.
//   R bytes a second of copying, F flops a second of bf16 matrices: measured in the same run, or assumed (predictions).
// Shape   letters as in core/backend/tensors.h. Bytes are read or written once each; what a cache saves is not taken off.
// Thread  any; pure.
// Source  ours; the table of shapes is Llama's (Grattafiori et al. 2024).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/backend/tensors.h"

namespace quire::gpu::measure {

struct Cost {
  double bytes = 0;
  double flops = 0;
};

struct Rates {
  double bytes_per_s = 0;
  double flops_per_s = 0;
  double launch_s = 0;
};

// The numbers of a weight and their scales.
double weight_bytes_of(std::uint32_t n, std::uint32_t k, backend::WeightType type);

Cost linear_cost(std::uint32_t n, std::uint32_t k, std::uint32_t rows, backend::WeightType type);
// Decoding: each row is a sequence of its own with so many positions. A prompt's rows share theirs.
struct AttentionShape {
  std::uint32_t num_heads = 0;
  std::uint32_t num_kv_heads = 0;
  std::uint32_t head_dim = 0;
};
Cost attend_cost(const AttentionShape& shape, std::uint32_t num_sequences, std::uint32_t rows_each,
                 std::uint32_t positions, backend::KvType type);
// `touched`: floats that are read or written for a row.
Cost rows_cost(std::uint32_t rows, std::uint32_t touched);

double least_seconds(const Cost& cost, const Rates& rates);

// A kernel on a shape that models have: what roofline runs, and what is predicted.
struct KernelShape {
  std::string kernel;  // "linear", "attend", "norm", "act_mul"
  std::string of;      // "8b gate_up"
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  std::uint32_t rows = 0;
  std::uint32_t positions = 0;  // of each sequence; attend alone
  backend::WeightType weight = backend::WeightType::kBF16;
  backend::KvType kv = backend::KvType::kBF16;
  AttentionShape attention{};
  std::uint32_t rows_each = 1;  // of a sequence; attend alone

  std::string type() const;
};
Cost cost_of(const KernelShape& shape);
// Of Llama 1B and 8B, or a few tiny ones that a simulator can run.
std::vector<KernelShape> kernel_shapes(bool tiny);

// gpu/predictions.csv: a line for each shape.
std::string predictions_csv();

}  // namespace quire::gpu::measure
