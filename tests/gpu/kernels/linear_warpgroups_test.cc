// The linear layer by four warps at a time, on the simulator: it has the bits of the others there.
#include "gpu/kernels/linear_warpgroups.h"

#include <gtest/gtest.h>

#include "gpu/linear_layers.h"
#include "gpu/pack.h"
#include "gpu/runtime/simulated_device.h"
#include "gpu/tensors.h"
#include "tests/core/cpu/plain_quantised.h"
#include "tests/core/cpu/rig.h"
#include "tests/support/cases.h"

namespace quire::gpu::linear_warpgroups_test {
namespace {

using namespace cpu::test;
using quire::testing::kSanitized;
using quire::testing::sampled;

// A layer's product by LinearLayers, with and without warpgroups.
struct BothWays {
  std::vector<float> plain;
  std::vector<float> warpgroups;
};
BothWays multiplied(std::uint32_t n, std::uint32_t k, std::uint32_t rows, Finish finish, Pace pace,
                    std::optional<Format> quantize = std::nullopt) {
  Random random(n + k);
  const Matrix w = random_matrix(random, n, k, Format::kBF16);
  const backend::HostMatrix view = w.view();
  const std::vector<float> bias = random.floats(n);
  const std::span<const float> biases(bias);
  const Packed packed = gpu::pack({&view, 1}, {&biases, 1}, quantize);
  const std::vector<float> x = random.floats(std::size_t{rows} * k);
  const std::vector<float> before = random.floats(std::size_t{rows} * n);
  BothWays out;
  for (const bool warpgroups : {false, true}) {
    const auto device = make_simulated_device(n + rows, pace);
    device->let_kernels_overlap(true);
    const DeviceWeight weight(*device, packed.shape, packed.bytes, nullptr);
    const DeviceVector on_device(*device, x);
    const DeviceVector y(*device, before);
    LinearLayers linear(*device, rows, warpgroups);
    linear.reserve(packed.shape.format, k);
    linear.multiply({on_device.data(), nullptr, 0.0f, k}, rows, weight.view(), {finish}, const_cast<float*>(y.data()),
                    finish == Finish::kGate ? n / 2 : n);
    std::vector<float>& values = warpgroups ? out.warpgroups : out.plain;
    values.resize(std::size_t{rows} * n / (finish == Finish::kGate ? 2 : 1));
    device->download(values.data(), y.data(), values.size() * sizeof(float));
  }
  return out;
}

TEST(LinearWarpgroups, HasTheBitsOfTheOthersAtEveryRemainderOfRowsOutputsAndInputs) {
  struct Case {
    std::uint32_t n, k, rows;
  };
  for (const Case c :
       {Case{1, 1, 17}, {128, 256, 128}, {129, 257, 129}, {70, 600, 40}, {16, 63, 200}, {300, 1000, 33}}) {
    for (const Finish finish : {Finish::kStore, Finish::kAdd}) {
      const BothWays y = multiplied(c.n, c.k, c.rows, finish, Pace::kAtOnce);
      EXPECT_TRUE(same_bits(y.warpgroups, y.plain)) << c.n << " " << c.k << " " << c.rows;
    }
  }
}

constexpr std::optional<Format> kTypes[] = {std::nullopt, Format::kInt8, Format::kFp8, Format::kInt4};

TEST(LinearWarpgroups, HasTheBitsOfTheOthersForEveryTypeThatIsMultipliedInBf16) {
  struct Case {
    std::uint32_t n, k, rows;
  };
  for (const std::optional<Format> quantize : kTypes) {
    for (const Case c : {Case{70, 600, 65}, {16, 63, 130}, {4240, 66, 33}, {17000, 66, 33}}) {
      const backend::Format type = quantize.value_or(Format::kBF16);
      ASSERT_EQ(linear_grid(type, c.n, c.rows, false, true).kernel, LinearKernel::kWarpgroups);
      for (const Finish finish : {Finish::kStore, Finish::kAdd}) {
        if (c.n > 1000 && (finish == Finish::kAdd || (kSanitized && quantize != Format::kInt4))) continue;
        const BothWays y = multiplied(c.n, c.k, c.rows, finish, Pace::kEarly, quantize);
        EXPECT_TRUE(same_bits(y.warpgroups, y.plain))
            << name_of(quantize.value_or(Format::kBF16)) << " " << c.n << " " << c.rows;
      }
    }
    const BothWays gated = multiplied(96, 300, 70, Finish::kGate, Pace::kEarly, quantize);
    EXPECT_TRUE(same_bits(gated.warpgroups, gated.plain)) << name_of(quantize.value_or(Format::kBF16));
  }
}

// Enough outputs that a block has eight tiles of them, and few enough that it has four: a block of 128 rows, and of 64.
TEST(LinearWarpgroups, HasTheBitsOfTheOthersInBlocksOfEverySize) {
  struct Case {
    std::uint32_t n, rows, tiles, block_rows;
  };
  for (const Case& c : sampled({Case{150, 64, kFewTiles, 64},
                                {150, 130, kFewTiles, 128},
                                {17000, 33, kManyTiles, 64},
                                {17000, 65, kManyTiles, 128}})) {
    const LinearGrid grid = linear_grid(backend::Format::kBF16, c.n, c.rows, false, true);
    ASSERT_EQ(grid.tiles, c.tiles);
    ASSERT_EQ(grid.row_tiles * kTileRows, c.block_rows);
    const BothWays y = multiplied(c.n, 70, c.rows, Finish::kStore, Pace::kAtOnce);
    EXPECT_TRUE(same_bits(y.warpgroups, y.plain)) << c.n << " " << c.rows;
  }
}

TEST(LinearWarpgroups, GatesAndBeginsBeforeItsWaitWithTheSameBits) {
  for (const std::uint32_t rows : {60u, 130u}) {
    for (const std::uint32_t n : sampled({32u, 96u, 256u, 288u})) {
      const BothWays y = multiplied(n, 300, rows, Finish::kGate, Pace::kEarly);
      EXPECT_TRUE(same_bits(y.warpgroups, y.plain)) << n << " " << rows;
    }
  }
  const BothWays y = multiplied(17024, 70, 40, Finish::kGate, Pace::kEarly);  // eight tiles a block
  EXPECT_TRUE(same_bits(y.warpgroups, y.plain));
}

std::vector<float> with_waits_of(std::uint64_t seed) {
  constexpr std::uint32_t kOutputs = 70;
  constexpr std::uint32_t kInputs = 1200;  // 5 slices, the last of 176 inputs
  constexpr std::uint32_t kRows = 35;
  const auto device = make_simulated_device(seed);
  Random random(9);
  const Matrix w = random_matrix(random, kOutputs, kInputs, Format::kBF16);
  const backend::HostMatrix view = w.view();
  const Packed packed = gpu::pack({&view, 1}, {}, std::nullopt);
  const DeviceWeight weight(*device, packed.shape, packed.bytes, nullptr);
  const DeviceVector x(*device, random.floats(std::size_t{kRows} * kInputs));
  const DeviceVector out(*device, std::vector<float>(std::size_t{kRows} * kOutputs));
  LinearLayers linear(*device, kRows, true);
  linear.reserve(packed.shape.format, kInputs);
  linear.multiply({x.data(), nullptr, 0.0f, kInputs}, kRows, weight.view(), {}, const_cast<float*>(out.data()),
                  kOutputs);
  std::vector<float> values(std::size_t{kRows} * kOutputs);
  device->download(values.data(), out.data(), values.size() * sizeof(float));
  return values;
}

TEST(LinearWarpgroups, HasTheSameBitsWhoeverWaits) {
  const std::vector<float> first = with_waits_of(1);
  for (std::uint64_t seed = 2; seed <= (kSanitized ? 2 : 6); ++seed)
    EXPECT_TRUE(same_bits(with_waits_of(seed), first)) << seed;
}

// Few rows go as ever, many through the kernel: a row's bits are the same.
TEST(LinearWarpgroups, AreAskedForWhereTheyAreWantedAndRowsAreMany) {
  for (const std::uint32_t rows : {16u, 17u}) {
    const auto device = make_simulated_device();
    LinearLayers linear(*device, rows, true);
    linear.reserve(backend::Format::kBF16, 64);
    Random random(1);
    const Matrix w = random_matrix(random, 16, 64, Format::kBF16);
    const backend::HostMatrix view = w.view();
    const Packed packed = gpu::pack({&view, 1}, {}, std::nullopt);
    const DeviceWeight weight(*device, packed.shape, packed.bytes, nullptr);
    const DeviceVector x(*device, random.floats(std::size_t{rows} * 64));
    const DeviceVector y(*device, random.floats(std::size_t{rows} * 16));
    LaunchList launches;
    device->record(&launches);
    linear.multiply({x.data(), nullptr, 0.0f, 64}, rows, weight.view(), {}, const_cast<float*>(y.data()), 16);
    device->record(nullptr);
    ASSERT_EQ(launches.size(), 2u);
    const LinearTable& kernels = device->kernels().linear;
    EXPECT_EQ(launches.at(1).code,
              rows == 17 ? kernels.warpgroups.bf16.many_tiles_half.code : kernels.bf16.split_2_1.code);
  }
}

}  // namespace
}  // namespace quire::gpu::linear_warpgroups_test
