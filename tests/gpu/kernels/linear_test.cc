// Linear layers on the simulated tensor cores: as the CPU where rows are whole numbers, else as closely as f32 adds; a row's bits are
// the same alone, in any company, and however the work is dealt to blocks.
#include <cmath>
#include <numeric>

#include "gpu/gpu_ops.h"
#include "gpu/kernels/linear_table.h"
#include "gpu/linear_layers.h"
#include "gpu/pack.h"
#include "gpu/runtime/simulated_device.h"
#include "gpu/tensors.h"
#include "tests/core/cpu/plain_quantised.h"
#include "tests/core/cpu/rig.h"
#include "tests/gpu/kernels/linear_lab.h"
#include "tests/support/cases.h"

namespace quire::gpu::linear_test {
namespace {

using namespace cpu::test;
using backend::Format;
using backend::Ops;
using quire::testing::sampled;

constexpr std::optional<Format> kAllTiled[] = {std::nullopt,        Format::kInt8, Format::kInt4,   Format::kW8A8,
                                               Format::kW8A8PerRow, Format::kW4A8, Format::kW16A16, Format::kFp8};

std::string name_of(std::optional<Format> quantize) { return backend::name_of(quantize.value_or(Format::kBF16)); }

std::unique_ptr<Ops> simulated(std::uint64_t seed = 1) {
  return make_gpu_ops(make_simulated_device(seed), {.max_rows = 80});
}

std::unique_ptr<backend::Weight> pack_with_bias(Ops& ops, const Matrix& w, std::optional<Format> quantize,
                                                std::span<const float> bias) {
  const backend::HostMatrix view = w.view();
  return ops.pack({&view, 1}, {&bias, 1}, quantize);
}

std::vector<float> row_of(const std::vector<float>& x, std::size_t row, std::size_t width) {
  return {x.begin() + static_cast<std::ptrdiff_t>(row * width),
          x.begin() + static_cast<std::ptrdiff_t>((row + 1) * width)};
}

TEST(GpuLinear, MultipliesWholeNumbersWithTheBitsOfTheCpu) {
  const auto cpu = make_ops("auto", 1);
  const auto gpu = simulated();
  struct Case {
    std::uint32_t n, k, rows;
  };
  for (const Case c : {Case{1, 1, 1},
                       {16, 31, 8},
                       {17, 33, 9},
                       {32, 64, 1},
                       {33, 65, 16},
                       {5, 255, 17},
                       {16, 256, 2},
                       {40, 257, 3},
                       {70, 600, 7},
                       {33, 513, 66}}) {
    for (const std::optional<Format> quantize : {Format::kW8A8, Format::kW8A8PerRow, Format::kW4A8}) {
      Random random(c.n * 1000 + c.k);
      const Matrix w = random_matrix(random, c.n, c.k, Format::kF32);
      const std::vector<float> bias = random.floats(c.n);
      std::vector<float> x = random.floats(std::size_t{c.rows} * c.k);
      for (float& value : x) value *= std::exp2(static_cast<float>(random.below(20)) - 10.0f);
      const auto expected = run_linear(*cpu, x, *pack_with_bias(*cpu, w, quantize, bias), c.rows);
      const auto out = run_linear(*gpu, x, *pack_with_bias(*gpu, w, quantize, bias), c.rows);
      EXPECT_TRUE(same_bits(out, expected)) << name_of(quantize) << " " << c.n << " " << c.k << " " << c.rows;
    }
  }
}

// Rows are rounded to bf16, and so are int4's weights; each output's terms are added in f32.
TEST(GpuLinear, MultipliesRoundedRowsAsCloselyAsF32Adds) {
  const auto gpu = simulated();
  for (const std::optional<Format> quantize : std::initializer_list<std::optional<Format>>{
           std::nullopt, Format::kInt8, Format::kInt4, Format::kW16A16, Format::kFp8}) {
    for (const std::uint32_t k : sampled({1u, 16u, 31u, 64u, 65u, 255u, 256u, 257u, 900u, 2300u})) {
      constexpr std::uint32_t kOutputs = 35;
      Random random(k);
      const Matrix w = random_matrix(random, kOutputs, k, Format::kBF16);
      const std::vector<float> bias = random.floats(kOutputs);
      const std::vector<float> x = random.floats(std::size_t{2} * k);
      const Plain plain = quantize == std::nullopt ? quantised(w, Format::kW16A16) : quantised(w, quantize);
      const auto out = run_linear(*gpu, x, *pack_with_bias(*gpu, w, quantize, bias), 2);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t n = i % kOutputs;
        double sum = bias[n];
        double size = std::abs(sum);
        for (std::uint32_t j = 0; j < k; ++j) {
          const double rounded = f32_of_bf16(bf16_of_f32(x[i / kOutputs * k + j]));
          double weight = double{plain.codes[n * k + j]} * double{plain.scale(n, j)};
          if (quantize == Format::kInt4) weight = f32_of_bf16(bf16_of_f32(static_cast<float>(weight)));
          const double term = rounded * weight;
          sum += term;
          size += std::abs(term);
        }
        ASSERT_NEAR(out[i], sum, size * (k + 8) * 0x1p-24) << name_of(quantize) << " " << k << " " << i;
      }
    }
  }
}

TEST(GpuLinear, GivesARowTheSameBitsInAnyCompanyOfOneToFortyRows) {
  constexpr std::uint32_t kOutputs = 40;
  constexpr std::uint32_t kInputs = 600;
  for (const std::optional<Format> quantize : kAllTiled) {
    const auto ops = simulated(2);
    Random random(7);
    const auto weight = pack(*ops, random_matrix(random, kOutputs, kInputs, Format::kBF16), quantize);
    const std::vector<float> x = random.floats(std::size_t{40} * kInputs);
    const std::vector<float> all = run_linear(*ops, x, *weight, 40);
    for (const std::uint32_t rows : sampled({1u, 2u, 5u, 7u, 8u, 9u, 15u, 16u, 17u, 32u, 33u})) {
      // The last rows of all: each at another place than before.
      const std::vector<float> some(x.end() - std::ptrdiff_t{rows} * kInputs, x.end());
      EXPECT_TRUE(same_bits(run_linear(*ops, some, *weight, rows), std::span(all).last(rows * kOutputs)))
          << name_of(quantize) << " " << rows;
    }
  }
}

TEST(GpuLinear, GivesARowTheSameBitsAtEveryRemainderOfInputsAndOutputs) {
  for (const std::optional<Format> quantize : kAllTiled) {
    const auto ops = simulated(3);
    for (const std::uint32_t k : sampled({1u, 63u, 64u, 65u, 255u, 256u, 257u, 320u, 500u})) {
      const std::uint32_t n = 1 + k % 34;
      Random random(k);
      const auto weight = pack(*ops, random_matrix(random, n, k, Format::kBF16), quantize);
      const std::vector<float> x = random.floats(std::size_t{17} * k);
      const std::vector<float> all = run_linear(*ops, x, *weight, 17);
      for (const std::uint32_t row : {0u, 16u}) {
        EXPECT_TRUE(same_bits(run_linear(*ops, row_of(x, row, k), *weight, 1), row_of(all, row, n)))
            << name_of(quantize) << " " << n << " " << k;
      }
    }
  }
}

TEST(GpuLinear, KeepsAFaultInItsRow) {
  constexpr std::uint32_t kInputs = 300;
  for (const std::optional<Format> quantize : kAllTiled) {
    const auto ops = simulated();
    Random random(8);
    const auto weight = pack(*ops, random_matrix(random, 20, kInputs, Format::kBF16), quantize);
    std::vector<float> x = random.floats(std::size_t{3} * kInputs);
    const std::vector<float> whole = run_linear(*ops, x, *weight, 3);
    x[kInputs + 270] = INFINITY;
    const std::vector<float> out = run_linear(*ops, x, *weight, 3);
    for (const std::uint32_t row : {0u, 2u}) EXPECT_TRUE(same_bits(row_of(out, row, 20), row_of(whole, row, 20)));
    for (const float value : row_of(out, 1, 20)) EXPECT_FALSE(std::isfinite(value)) << name_of(quantize);
  }
}

TEST(GpuLinear, LooksUpRowsOfEveryTypeOfTableAsTheCpuDoes) {
  const auto cpu = make_ops("auto", 1);
  const auto gpu = simulated();
  for (const std::optional<Format> quantize : kAllTiled) {
    for (const std::uint32_t k : {1u, 33u, 130u}) {
      Random random(k);
      const Matrix w = random_matrix(random, 37, k, Format::kBF16);
      EXPECT_TRUE(same_bits(run_embed(*gpu, *pack(*gpu, w, quantize)), run_embed(*cpu, *pack(*cpu, w, quantize))))
          << name_of(quantize) << " " << k;
    }
  }
}

LinearBench bench_of(std::optional<Format> quantize, std::uint32_t n, std::uint32_t k, std::uint32_t rows) {
  Random random(n + k);
  return LinearBench(random_matrix(random, n, k, Format::kBF16), quantize, rows);
}

TEST(GpuLinear, AddsUpSlicesWithTheSameBitsInEveryKernel) {
  for (const std::optional<Format> quantize : kAllTiled) {
    for (const std::uint32_t rows : {3u, 35u}) {
      LinearBench bench =
          bench_of(quantize, 70, rows == 3 ? 4700 : 600, rows);  // 19 slices, the last of 92 inputs: three rounds
      const std::vector<float> whole = bench.run(kLinearWays[0], Finish::kStore);
      for (const LinearWay& way : std::span(kLinearWays).subspan(1)) {
        EXPECT_TRUE(same_bits(bench.run(way, Finish::kStore), whole))
            << name_of(quantize) << rows << " " << way.row_tiles << " " << way.tiles;
      }
    }
  }
}

TEST(GpuLinear, AddsToWhatIsThereAndGatesWithTheBitsOfOneAfterTheOther) {
  for (const std::optional<Format> quantize : kAllTiled) {
    for (const LinearWay& way : kLinearWays) {
      const std::uint32_t rows = way.row_tiles == 0 ? 33 : way.row_tiles * kTileRows - 5;
      LinearBench bench = bench_of(quantize, 96, 300, rows);
      const std::vector<float> y = bench.run(way, Finish::kStore);
      std::vector<float> added = bench.before();
      for (std::size_t i = 0; i < y.size(); ++i) added[i] = added[i] + y[i];
      EXPECT_TRUE(same_bits(bench.run(way, Finish::kAdd), added)) << name_of(quantize);
      if (way.tiles == 1) continue;  // a gate and its factor are two tiles
      std::vector<float> products;
      for (std::size_t i = 0; i < y.size(); ++i) {
        if (i % 96 < 48) products.push_back(activated(backend::Activation::kSilu, y[i]) * y[i + 48]);
      }
      EXPECT_TRUE(same_bits(bench.run(way, Finish::kGate), products)) << name_of(quantize) << " " << rows;
    }
  }
}

std::vector<float> downloaded(Device& device, const DeviceVector& values) {
  std::vector<float> out(values.size());
  device.download(out.data(), values.data(), out.size() * sizeof(float));
  return out;
}

TEST(GpuLinear, NormsRowsBeforeWithTheBitsOfOneAfterTheOther) {
  for (const std::optional<Format> quantize : kAllTiled) {
    for (const std::uint32_t k : sampled({1u, 17u, 300u, 4097u})) {
      const auto device = make_simulated_device(k);
      const std::uint32_t n = 16;
      Random random(k);
      const Matrix w = random_matrix(random, n, k, Format::kBF16);
      const backend::HostMatrix view = w.view();
      const Packed packed = gpu::pack({&view, 1}, {}, quantize);
      const DeviceWeight weight(*device, packed.shape, packed.bytes, nullptr);
      const std::vector<float> rows = random.floats(std::size_t{2} * k, 3.0f);
      const DeviceVector x(*device, rows);
      const DeviceVector scale(*device, random.floats(k));
      const DeviceVector normed(*device, rows);
      const DeviceVector out(*device, std::vector<float>(2 * n));
      const DeviceVector expected(*device, std::vector<float>(2 * n));
      LinearLayers linear(*device, 2);
      linear.reserve(packed.shape.format, k);
      device->start(device->kernels().norm, {2, 1},
                    {x.data(), scale.data(), 1e-5f, k, const_cast<float*>(normed.data()), k});
      linear.multiply({normed.data(), nullptr, 0.0f, k}, 2, weight.view(), {}, const_cast<float*>(expected.data()), n);
      linear.multiply({x.data(), scale.data(), 1e-5f, k}, 2, weight.view(), {}, const_cast<float*>(out.data()), n);
      EXPECT_TRUE(same_bits(downloaded(*device, out), downloaded(*device, expected))) << name_of(quantize) << " " << k;
    }
  }
}

}  // namespace
}  // namespace quire::gpu::linear_test
