// x += silu(y W + b), row by row: the residual block of Medusa and Hydra heads.
// Shape   y [T,K], W [E,K], x [T,E]; all rows of the current step.
// Owner   the drafter. Ops outlive it.
// Thread  made at startup, then engine. Nothing allocates.
// Source  residual blocks of Medusa (Cai et al. 2024).
#pragma once

#include <cstdint>
#include <memory>

#include "core/backend/ops.h"

namespace quire::speculate {

class SiluAdder {
 public:
  SiluAdder(backend::Ops& ops, std::uint32_t max_rows, std::uint32_t hidden);

  void add(const backend::Buffer& y, const backend::Weight& w, std::uint32_t num_rows, backend::Buffer& x);

 private:
  backend::Ops& ops_;
  std::unique_ptr<backend::Buffer> gate_;       // [T, E]
  std::unique_ptr<backend::Buffer> activated_;  // [T, E]
};

}  // namespace quire::speculate
