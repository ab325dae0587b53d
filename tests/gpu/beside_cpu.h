// A test's body on the CPU and on simulated GPUs: the same bits.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "gpu/gpu_ops.h"
#include "gpu/runtime/simulated_device.h"
#include "tests/core/cpu/rig.h"

namespace quire::gpu::test {

using namespace cpu::test;

inline std::unique_ptr<backend::Ops> simulated(std::uint64_t seed = 1, std::uint32_t max_rows = 600) {
  return make_gpu_ops(make_simulated_device(seed), {.max_rows = max_rows});
}

// Compares the values that `body` reads on the CPU and on two simulated devices whose threads take turns differently.
template <typename Body>
void expect_same_bits(const Body& body) {
  const auto cpu = make_ops("auto", 1);
  const std::vector<float> expected = body(*cpu);
  for (const std::uint64_t seed : {1u, 2u}) {
    const auto gpu = simulated(seed);
    EXPECT_TRUE(same_bits(body(*gpu), expected)) << "seed " << seed;
  }
}

}  // namespace quire::gpu::test
