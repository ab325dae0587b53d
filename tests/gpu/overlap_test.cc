// Kernels that begin before their turn have the bits of those that wait.
#include <gtest/gtest.h>

#include "gpu/gpu_ops.h"
#include "gpu/runtime/simulated_device.h"
#include "tests/core/cpu/plain_quantised.h"
#include "tests/core/cpu/rig.h"

namespace quire::gpu::overlap_test {
namespace {

using namespace cpu::test;

// Those that take it by themselves; all others take it first (EngineOnGpu runs them).
TEST(Overlap, MultipliesEarlyWithTheSameBits) {
  for (const std::optional<Format> quantize : std::initializer_list<std::optional<Format>>{
           std::nullopt, Format::kInt8, Format::kInt4, Format::kW8A8, Format::kW4A8, Format::kFp8}) {
    Random random(11);
    const Matrix w = random_matrix(random, 70, 600, Format::kBF16);
    const std::vector<float> x = random.floats(std::size_t{40} * 600);
    const auto out = [&](Pace pace, std::uint32_t rows) {
      const auto ops = make_gpu_ops(make_simulated_device(4, pace), {.max_rows = 40});
      return run_linear(*ops, {x.begin(), x.begin() + rows * 600}, *pack(*ops, w, quantize), rows);
    };
    for (const std::uint32_t rows : {1u, 9u, 17u, 33u}) {
      EXPECT_TRUE(same_bits(out(Pace::kEarly, rows), out(Pace::kAtOnce, rows))) << rows;
    }
  }
}

}  // namespace
}  // namespace quire::gpu::overlap_test
