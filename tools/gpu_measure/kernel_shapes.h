// Kernels on the shapes of real models: those that stage roofline measures and that are predicted for H100 and H200.
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

// A kernel with its shape and types.
struct KernelShape {
  std::string kernel;  // "linear", "attend", "norm", "act_mul"
  std::string of;      // "8b gate_up"
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  std::uint32_t rows = 0;
  std::uint32_t positions = 0;  // per sequence; only for attend
  backend::Format weight = backend::Format::kBF16;
  backend::KvType kv = backend::KvType::kBF16;
  HeadsOfShape heads{};
  std::uint32_t rows_each = 1;  // per sequence; only for attend

  std::string type() const;
};
Cost cost_of(const KernelShape& shape);
// Cost of attention for sequences of equal shape: the last `rows_each` rows of `positions` positions each.
Cost attend_cost(const HeadsOfShape& heads, std::uint32_t num_sequences, std::uint32_t rows_each,
                 std::uint32_t positions, backend::KvType type);
// Shapes of Llama 1B and 8B, or a few tiny ones that a simulator can run.
std::vector<KernelShape> kernel_shapes(bool tiny);

// Text of gpu/predictions.csv: one line per shape.
std::string predictions_csv();

}  // namespace quire::gpu::measure
