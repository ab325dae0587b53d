#include "core/speculate/heads/silu_adder.h"

namespace quire::speculate {

SiluAdder::SiluAdder(backend::Ops& ops, std::uint32_t max_rows, std::uint32_t hidden) : ops_(ops) {
  for (auto* buffer : {&gate_, &activated_}) *buffer = ops.make_buffer(max_rows, hidden);
}

void SiluAdder::add(const backend::Buffer& y, const backend::Weight& w, std::uint32_t num_rows, backend::Buffer& x) {
  ops_.linear(y, w, num_rows, *gate_, {},
              backend::ThenActivate{activated_.get(), backend::Activation::kSilu, /*gated=*/false});
  ops_.add(x, *activated_, 1.0f, num_rows);
}

}  // namespace quire::speculate
