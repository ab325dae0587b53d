// Kernels on shapes that models have: what roofline runs, and what is predicted of H100 and H200.
// Shape   letters as in core/backend/tensors.h.
// Thread  any; pure.
// Source  ours; the shapes are Llama's (Grattafiori et al. 2024).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/backend/tensors.h"
#include "gpu/costs.h"

namespace quire::gpu::measure {

struct HeadsOfShape {
  std::uint32_t num_heads = 0;
  std::uint32_t num_kv_heads = 0;
  std::uint32_t head_dim = 0;
};

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
  HeadsOfShape heads{};
  std::uint32_t rows_each = 1;  // of a sequence; attend alone

  std::string type() const;
};
Cost cost_of(const KernelShape& shape);
// Of sequences alike: the last rows of so many positions each.
Cost attend_cost(const HeadsOfShape& heads, std::uint32_t num_sequences, std::uint32_t rows_each,
                 std::uint32_t positions, backend::KvType type);
// Of Llama 1B and 8B, or a few tiny ones that a simulator can run.
std::vector<KernelShape> kernel_shapes(bool tiny);

// gpu/predictions.csv: a line for each shape.
std::string predictions_csv();

}  // namespace quire::gpu::measure
