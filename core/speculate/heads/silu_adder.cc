#include "core/speculate/heads/silu_adder.h"

#include <vector>

namespace quire::speculate {

SiluAdder::SiluAdder(backend::Ops& ops, RowMover& mover, std::uint32_t max_rows, std::uint32_t hidden) : ops_(ops) {
  for (auto* buffer : {&gate_, &activated_}) *buffer = ops.make_buffer(max_rows, hidden);
  gate_one_ = ops.make_buffer(max_rows, 2 * hidden);
  // silu(gate) · up, with an up of 1 that stays there.
  const std::vector<float> ones(hidden, 1.0f);
  const backend::HostMatrix row{ones.data(), backend::DType::kF32, 1, hidden};
  const std::unique_ptr<backend::Weight> table = ops.pack({&row, 1}, {});
  mover.take_first(*table, max_rows, *activated_);
  ops.place(*activated_, max_rows, hidden, *gate_one_);
}

void SiluAdder::add(const backend::Buffer& y, const backend::Weight& w, std::uint32_t num_rows, backend::Buffer& x) {
  ops_.linear(y, w, num_rows, *gate_);
  ops_.place(*gate_, num_rows, 0, *gate_one_);
  ops_.act_mul(*gate_one_, *activated_);
  ops_.add(x, *activated_);
}

}  // namespace quire::speculate
