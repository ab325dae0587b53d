// x += silu(y W + b), row by row: the block that Medusa's and Hydra's heads are made of, by ops that gate a product.
// Shape   y [T,K], W [E,K], x [T,E]; all rows of the step begun.
// Owner   the drafter. Ops outlive it.
// Thread  made while starting; then engine. Nothing allocates.
// Source  ResNet blocks of Medusa (Cai et al. 2024).
#pragma once

#include <cstdint>
#include <memory>

#include "core/backend/ops.h"
#include "core/speculate/heads/row_mover.h"

namespace quire::speculate {

class SiluAdder {
 public:
  SiluAdder(backend::Ops& ops, RowMover& mover, std::uint32_t max_rows, std::uint32_t hidden);

  void add(const backend::Buffer& y, const backend::Weight& w, std::uint32_t num_rows, backend::Buffer& x);

 private:
  backend::Ops& ops_;
  std::unique_ptr<backend::Buffer> gate_;       // [T, E]
  std::unique_ptr<backend::Buffer> gate_one_;   // [T, 2E], columns gate | 1
  std::unique_ptr<backend::Buffer> activated_;  // [T, E]
};

}  // namespace quire::speculate
