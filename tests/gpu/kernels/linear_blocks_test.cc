// Linear layers of block-quantised weights on the simulated tensor cores: the equations of core/backend/step_ops.h
// written out plainly, slice by slice, bit for bit, for every type, kernel and finish; times f32, the CPU's bits.
#include <numeric>
#include <set>

#include "gpu/gpu_ops.h"
#include "tests/core/cpu/blocks/plain_blocks.h"
#include "tests/gpu/kernels/linear_lab.h"
#include "tests/support/cases.h"

namespace quire::gpu::linear_blocks_test {
namespace {

using namespace cpu::test;
using backend::Format;
using backend::Ops;
using quire::testing::sampled;

constexpr Activation kInt8 = Activation::kInt8;

std::unique_ptr<Ops> simulated(std::uint64_t seed = 1) {
  return make_gpu_ops(make_simulated_device(seed), {.max_rows = 80});
}

std::unique_ptr<backend::Weight> pack_blocks(Ops& ops, const Matrix& w, const BlockLayout& layout,
                                             Activation activation) {
  return pack(ops, w, Format::of_blocks(layout.type, activation));
}

std::vector<float> plain(const std::vector<float>& x, const Matrix& w, const BlockLayout& layout, std::uint32_t rows,
                         std::span<const float> bias = {}) {
  return plain_linear_of_blocks(x, w, layout, kInt8, rows, bias, true);
}

TEST(GpuLinearOfBlocks, EqualsThePlainLoopWhateverTheShape) {
  Random random(51);
  for (const BlockLayout& layout : backend::block_layouts_of_files()) {
    const auto gpu = simulated();
    for (const std::uint32_t blocks : sampled({1u, 3u, 8u, 9u, 17u})) {
      const std::uint32_t k = layout.elements * (layout.elements == 256 ? (blocks + 2) / 4 + 1 : blocks);
      for (const std::uint32_t rows : sampled({1u, 2u, 7u, 8u, 9u, 17u, 33u})) {
        const Matrix w = random_blocks(random, layout, 16 * (blocks % 5) + 3, k);
        const std::vector<float> x = random.floats(std::size_t{rows} * k, 3.0f);
        EXPECT_TRUE(
            same_bits(run_linear(*gpu, x, *pack_blocks(*gpu, w, layout, kInt8), rows), plain(x, w, layout, rows)))
            << layout.name << " rows " << rows << " k " << k;
      }
    }
  }
}

TEST(GpuLinearOfBlocks, TimesF32HasTheBitsOfTheCpu) {
  Random random(52);
  const auto cpu = make_ops("auto", 1);
  const auto gpu = simulated();
  for (const BlockLayout& layout : backend::block_layouts()) {
    if (is_fp8(layout)) continue;  // rows are rounded to bf16
    const Matrix w = random_blocks(random, layout, 37, 512);
    const std::vector<float> x = random.floats(std::size_t{9} * w.k);
    EXPECT_TRUE(same_bits(run_linear(*gpu, x, *pack_blocks(*gpu, w, layout, Activation::kF32), 9),
                          run_linear(*cpu, x, *pack_blocks(*cpu, w, layout, Activation::kF32), 9)))
        << layout.name;
  }
}

TEST(GpuLinearOfBlocks, LooksUpTheNumbersOfRows) {
  Random random(53);
  const auto gpu = simulated();
  for (const BlockLayout& layout : backend::block_layouts()) {
    const Matrix w = random_blocks(random, layout, 37, 256);
    for (const Activation activation : {Activation::kF32, kInt8}) {
      if (!gpu->takes(Format::of_blocks(layout.type, activation))) continue;
      const std::vector<float> out = run_embed(*gpu, *pack_blocks(*gpu, w, layout, activation));
      EXPECT_TRUE(same_bits(out, std::span(w.values).first(out.size()))) << layout.name;
    }
  }
}

TEST(GpuLinearOfBlocks, HasTheSameBitsInEveryKernelWithABiasAndEveryFinish) {
  Random random(54);
  for (const BlockLayout& layout : backend::block_layouts_of_files()) {
    const Matrix w = random_blocks(random, layout, 96, 768);
    for (const LinearWay& way : kLinearWays) {
      const std::uint32_t rows = way.row_tiles == 0 ? 35 : way.row_tiles * kTileRows - 3;
      LinearBench bench(w, Format::of_blocks(layout.type, kInt8), rows);
      const std::vector<float> y = plain(bench.input(), w, layout, rows, bench.bias());
      const std::string what =
          std::string(layout.name) + " " + std::to_string(way.row_tiles) + " x " + std::to_string(way.tiles);
      EXPECT_TRUE(same_bits(bench.run(way, Finish::kStore), y)) << what;
      std::vector<float> added = bench.before();
      for (std::size_t i = 0; i < y.size(); ++i) added[i] = added[i] + y[i];
      EXPECT_TRUE(same_bits(bench.run(way, Finish::kAdd), added)) << what;
      if (way.tiles == 1) continue;  // a gate and its factor are two tiles
      std::vector<float> products;
      for (std::size_t i = 0; i < y.size(); ++i) {
        if (i % 96 < 48) products.push_back(activated(backend::Activation::kSilu, y[i]) * y[i + 48]);
      }
      EXPECT_TRUE(same_bits(bench.run(way, Finish::kGate), products)) << what;
    }
  }
}

std::vector<BlockLayout> fp8_layouts() {
  std::vector<BlockLayout> found;
  std::ranges::copy_if(backend::block_layouts(), std::back_inserter(found), is_fp8);
  return found;
}

TEST(GpuLinearOfBlocks, MultipliesFp8InGroupsAsCloselyAsF32Adds) {
  Random random(59);
  ASSERT_EQ(fp8_layouts().size(), 3u);
  for (const BlockLayout& layout : fp8_layouts()) {
    const auto gpu = simulated();
    for (const std::uint32_t k : sampled({128u, 256u, 384u, 1152u})) {
      const Matrix w = random_blocks(random, layout, 35, k);
      const std::vector<float> x = random.floats(std::size_t{2} * k);
      const std::vector<float> out = run_linear(*gpu, x, *pack_blocks(*gpu, w, layout, Activation::kF32), 2);
      for (std::size_t i = 0; i < out.size(); ++i) {
        double sum = 0.0;
        double size = 0.0;
        for (std::uint32_t j = 0; j < k; ++j) {
          const double term = double{f32_of_bf16(bf16_of_f32(x[i / w.n * k + j]))} * w.values[i % w.n * k + j];
          sum += term;
          size += std::abs(term);
        }
        ASSERT_NEAR(out[i], sum, size * (k + 8) * 0x1p-24) << layout.name << " " << k << " " << i;
      }
    }
  }
}

TEST(GpuLinearOfBlocks, HasTheSameBitsOfFp8InEveryKernel) {
  Random random(60);
  for (const BlockLayout& layout : fp8_layouts()) {
    const Matrix w = random_blocks(random, layout, 96, 768);
    LinearBench bench(w, Format::of_blocks(layout.type), 32);
    const std::vector<float> expected = bench.run(kLinearWays[0], Finish::kStore);
    for (const LinearWay& way : kLinearWays) {
      EXPECT_TRUE(same_bits(bench.run(way, Finish::kStore), expected)) << layout.name << " " << way.row_tiles;
    }
  }
}

// Input i is multiplied by x[columns[i]], whatever the format: what a row that was put in order before has.
TEST(GpuLinearOfBlocks, TakesARowInTheOrderOfItsColumns) {
  constexpr std::uint32_t kInputs = 512;
  Random random(61);
  std::vector<std::uint32_t> columns(kInputs);
  std::iota(columns.begin(), columns.end(), 0u);
  for (std::size_t i = kInputs - 1; i > 0; --i) std::swap(columns[i], columns[random.below(i + 1)]);
  std::vector<float> x = random.floats(std::size_t{9} * kInputs);
  std::vector<float> ordered(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) ordered[i] = x[i / kInputs * kInputs + columns[i % kInputs]];
  const auto gpu = simulated();
  for (const Format format : {Format::of_blocks(BlockType::kQ4_0, kInt8), Format::of_blocks(BlockType::kFp8G128),
                              Format::of_blocks(BlockType::kUint4G128), Format::of_blocks(BlockType::kNf4G64)}) {
    const Matrix w = random_blocks(random, backend::layout_of(format.blocks), 40, kInputs);
    backend::HostMatrix view = w.view();
    const auto plainly = gpu->pack({&view, 1}, {}, format);
    view.columns = columns;
    const auto weight = gpu->pack({&view, 1}, {}, format);
    EXPECT_TRUE(weight->has_columns());
    EXPECT_FALSE(plainly->has_columns());
    EXPECT_TRUE(same_bits(run_linear(*gpu, x, *weight, 9), run_linear(*gpu, ordered, *plainly, 9)))
        << backend::name_of(format);
    const auto adopted = gpu->adopt({w.n, w.k, format, false, true}, weight->packed(), nullptr);
    ASSERT_NE(adopted, nullptr);
    EXPECT_TRUE(same_bits(run_linear(*gpu, x, *adopted, 9), run_linear(*gpu, x, *weight, 9)));
  }
}

TEST(GpuLinearOfBlocks, SumsOfTheLargestCodesAreExact) {
  Random random(55);
  for (const BlockLayout& layout : backend::block_layouts_of_files()) {
    const auto gpu = simulated();
    for (const std::uint8_t byte : {0x00, 0xff, 0x7f, 0x80}) {
      Matrix w = random_blocks(random, layout, 17, 256);
      fill_codes(w, layout, byte);
      std::vector<float> x(std::size_t{3} * w.k);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = i < w.k || (i < 2 * w.k && i % 2 == 0) ? 2.0f : -2.0f;
      EXPECT_TRUE(same_bits(run_linear(*gpu, x, *pack_blocks(*gpu, w, layout, kInt8), 3), plain(x, w, layout, 3)))
          << layout.name << " " << int{byte};
    }
  }
}

TEST(GpuLinearOfBlocks, KeepsAFaultInItsRow) {
  Random random(56);
  for (const BlockLayout& layout : backend::block_layouts_of_files()) {
    const auto gpu = simulated();
    const Matrix w = random_blocks(random, layout, 20, 512);
    const auto weight = pack_blocks(*gpu, w, layout, kInt8);
    for (const float fault : {INFINITY, -INFINITY, NAN}) {
      std::vector<float> x = random.floats(std::size_t{3} * w.k);
      x[w.k + 270] = fault;
      const std::vector<float> out = run_linear(*gpu, x, *weight, 3);
      x[w.k + 270] = 0.0f;
      const std::vector<float> expected = plain(x, w, layout, 3);
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (i / w.n == 1) {
          EXPECT_TRUE(std::isnan(out[i])) << layout.name;
        } else {
          EXPECT_EQ(out[i], expected[i]) << layout.name;
        }
      }
    }
  }
}

TEST(GpuLinearOfBlocks, MultipliesByTheFactorsOfTheirMatrices) {
  Random random(58);
  const BlockLayout& layout = backend::layout_of(BlockType::kNVFP4);
  const Matrix w = random_blocks(random, layout, 40, 256);
  backend::HostMatrix views[] = {w.view(), w.view()};
  views[0].factor = 0.37f;
  views[1].factor = -1.9f;
  const std::vector<float> x = random.floats(std::size_t{2} * w.k);
  const auto gpu = simulated();
  for (const Activation activation : {Activation::kF32, kInt8}) {
    const std::vector<float> y = plain_linear_of_blocks(x, w, layout, activation, 2, {}, true);
    std::vector<float> expected;
    for (const std::size_t row : {0u, 1u}) {
      for (const backend::HostMatrix& view : views) {
        for (std::size_t n = 0; n < 40; ++n) expected.push_back(y[row * 40 + n] * view.factor);
      }
    }
    const auto weight = gpu->pack(views, {}, Format::of_blocks(layout.type, activation));
    EXPECT_TRUE(same_bits(run_linear(*gpu, x, *weight, 2), expected)) << text_of(layout, activation);
    const std::vector<float> rows = run_embed(*gpu, *weight);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i], w.values[i % w.values.size()] * views[i / w.values.size()].factor) << i;
    }
  }
}

// Of a row times inverse scales that are not finite: all codes and the scale are 0.
TEST(GpuLinearOfBlocks, TakesTinyRowsAsZeros) {
  Random random(57);
  const auto gpu = simulated();
  const Matrix w = random_blocks(random, backend::layout_of(BlockType::kQ4_K), 20, 256);
  std::vector<float> x(w.k, 1e-41f);
  for (const float value : run_linear(*gpu, x, *pack_blocks(*gpu, w, backend::layout_of(BlockType::kQ4_K), kInt8), 1)) {
    EXPECT_EQ(value, 0.0f);
  }
}

// A weight takes no more bytes on the device than the blocks, but for a few bits of each group (docs/quantization.md).
TEST(GpuLinearOfBlocks, TakesHardlyMoreBytesThanTheFile) {
  for (const BlockLayout& layout : backend::block_layouts_of_files()) {
    const double stored = 1.0 * layout.bytes / layout.elements;
    const double on_device = 1.0 * weight_bytes(2048, 2048, Format::of_blocks(layout.type, kInt8)) / (2048 * 2048);
    EXPECT_GE(on_device, stored - 0.14) << layout.name;  // MXFP4: a scale of 2 bytes for one; NVFP4 likewise
    EXPECT_LE(on_device, stored * (layout.type == BlockType::kQ2_K ? 1.34 : 1.13)) << layout.name;
  }
}

TEST(GpuLinearOfBlocks, PutsEachBitOfACodeAndEachScaleInAPlaceOfItsOwn) {
  for (const BlockLayout& layout : backend::block_layouts_of_files()) {
    const BlockShape shape = block_shape(layout.type);
    std::set<std::uint32_t> bits;
    for (std::uint32_t output = 0; output < kTileOutputs; ++output) {
      for (std::uint32_t input = 0; input < kStepInputs; ++input) {
        for (const BlockPlane& plane : {shape.low(), shape.high()}) {
          const BitPlace at = plane.bits == 0 ? BitPlace{} : place_in_plane(plane, output, input);
          for (std::uint32_t i = 0; i < plane.bits; ++i) bits.insert(at.byte * 8 + at.shift + i);
        }
      }
    }
    EXPECT_EQ(bits.size(), kTileOutputs * kStepInputs * layout.bits) << layout.name;
    EXPECT_EQ(*bits.rbegin(), bits.size() - 1) << layout.name;
    std::set<std::uint32_t> bytes;
    for (std::uint32_t output = 0; output < kTileOutputs; ++output) {
      for (std::uint32_t kind = 0; kind < shape.kinds; ++kind) {
        for (std::uint32_t group = 0; group < shape.groups(); ++group) {
          bytes.insert({shape.half_at(kind, group, output), shape.half_at(kind, group, output) + 1});
          if (shape.has_integers()) bytes.insert(shape.integer_at(kind, group, output));
        }
      }
    }
    EXPECT_EQ(*bytes.begin(), shape.code_bytes()) << layout.name;
    EXPECT_EQ(bytes.size(), shape.step_bytes() - shape.code_bytes()) << layout.name;
    EXPECT_EQ(*bytes.rbegin(), shape.step_bytes() - 1) << layout.name;
    EXPECT_EQ(shape.step_bytes() % 32, 0u) << layout.name;
  }
}

}  // namespace
}  // namespace quire::gpu::linear_blocks_test
