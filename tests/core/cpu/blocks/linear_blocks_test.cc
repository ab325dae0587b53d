// Products with block-quantised weights: against the equations of core/backend/step_ops.h written out plainly, bit for
// bit, for every type, activation form and instruction set.
#include <limits>

#include "tests/core/cpu/blocks/plain_blocks.h"

namespace quire::cpu::test::linear_blocks_test {
namespace {

std::unique_ptr<backend::Weight> pack_blocks(backend::Ops& ops, const Matrix& w, const BlockLayout& layout,
                                             Activation activation) {
  return pack(ops, w, Format::of_blocks(layout.type, activation));
}

void expect_plain(const std::vector<float>& x, const Matrix& w, const BlockLayout& layout, std::uint32_t rows,
                  const std::string& what) {
  for (const Activation activation : activations_of(layout)) {
    const std::vector<float> expected = plain_linear_of_blocks(x, w, layout, activation, rows);
    for (const std::string& isa : supported_isas()) {
      const auto ops = make_ops(isa, 1);
      EXPECT_TRUE(same_bits(run_linear(*ops, x, *pack_blocks(*ops, w, layout, activation), rows), expected))
          << isa << " " << text_of(layout, activation) << " " << what;
    }
  }
}

TEST(LinearOfBlocks, EqualsThePlainLoopWhateverTheShape) {
  Random random(41);
  for (const BlockLayout& layout : backend::block_layouts()) {
    for (const std::uint32_t blocks : {1u, 3u, 8u, 9u, 17u}) {
      const std::uint32_t k = layout.elements * (layout.elements >= 128 ? (blocks + 2) / 4 + 1 : blocks);
      for (const std::uint32_t rows : {1u, 2u, 3u, 5u, 6u, 7u, 13u}) {
        const Matrix w = random_blocks(random, layout, 16 * (blocks % 5) + 3, k);
        expect_plain(random.floats(std::size_t{rows} * k, 3.0f), w, layout, rows,
                     "rows " + std::to_string(rows) + " k " + std::to_string(k));
      }
    }
  }
}

TEST(LinearOfBlocks, InF32IsTheProductWithTheWidenedNumbers) {
  Random random(42);
  for (const BlockLayout& layout : backend::block_layouts()) {
    const Matrix w = random_blocks(random, layout, 70, 768);
    const Matrix widened = make_matrix(w.n, w.k, Format::kF32, w.values);
    const std::vector<float> x = random.floats(std::size_t{9} * w.k);
    const auto ops = make_ops("auto", 2);
    EXPECT_TRUE(same_bits(run_linear(*ops, x, *pack_blocks(*ops, w, layout, Activation::kF32), 9),
                          run_linear(*ops, x, *pack(*ops, widened, std::nullopt), 9)))
        << layout.name;
  }
}

TEST(LinearOfBlocks, SumsOfTheLargestCodesDoNotOverflow) {
  constexpr std::uint32_t kRows = 7;
  Random random(43);
  for (const BlockLayout& layout : backend::block_layouts()) {
    for (const std::uint8_t byte : {0x00, 0xff, 0x7f, 0x80, 0x55, 0xaa}) {
      if (layout.floats.size() == 256 && (byte & 0x7f) == 0x7f) continue;  // codes of NaN
      Matrix w = random_blocks(random, layout, 33, 512);
      fill_codes(w, layout, byte);
      std::vector<float> x(std::size_t{kRows} * w.k);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t row = i / w.k;
        const bool is_negative = row == 0 ? false : row == 1 ? true : i / row % 2 == 0;
        x[i] = is_negative ? -2.0f : 2.0f;
      }
      expect_plain(x, w, layout, kRows, "bytes " + std::to_string(byte));
    }
  }
}

TEST(LinearOfBlocks, ARowIsTheSameAloneAmongOthersAndOnAnyNumberOfThreads) {
  constexpr std::uint32_t kRows = 23;
  Random random(44);
  for (const BlockLayout& layout : backend::block_layouts()) {
    const Matrix w = random_blocks(random, layout, 131, 768);
    const std::vector<float> x = random.floats(std::size_t{kRows} * w.k);
    for (const Activation activation : activations_of(layout)) {
      const auto ops = make_ops("auto", 1);
      const auto packed = pack_blocks(*ops, w, layout, activation);
      const std::vector<float> all = run_linear(*ops, x, *packed, kRows);
      const auto more = make_ops("auto", 3);
      EXPECT_TRUE(same_bits(run_linear(*more, x, *pack_blocks(*more, w, layout, activation), kRows), all));
      for (std::size_t r = 0; r < kRows; ++r) {
        const auto first = x.begin() + static_cast<std::ptrdiff_t>(r * w.k);
        const std::vector<float> row(first, first + w.k);
        EXPECT_TRUE(same_bits(run_linear(*ops, row, *packed, 1), std::span(all).subspan(r * w.n, w.n)))
            << text_of(layout, activation) << " row " << r;
      }
    }
  }
}

TEST(LinearOfBlocks, AddsABiasOfEachMatrixAndPacksSeveralAsOne) {
  Random random(45);
  for (const BlockLayout& layout : backend::block_layouts()) {
    const Matrix a = random_blocks(random, layout, 21, 512);
    const Matrix b = random_blocks(random, layout, 40, 512);
    const std::vector<float> bias = random.floats(a.n);
    const std::vector<float> x = random.floats(std::size_t{3} * a.k);
    for (const Activation activation : activations_of(layout)) {
      const auto ops = make_ops("auto", 1);
      const backend::HostMatrix matrices[] = {a.view(), b.view()};
      const std::span<const float> biases[] = {bias, {}};
      const auto packed = ops->pack(matrices, biases, Format::of_blocks(layout.type, activation));
      const std::vector<float> out = run_linear(*ops, x, *packed, 3);
      const std::vector<float> first = plain_linear_of_blocks(x, a, layout, activation, 3, bias);
      const std::vector<float> second = plain_linear_of_blocks(x, b, layout, activation, 3);
      for (std::size_t r = 0; r < 3; ++r) {
        EXPECT_TRUE(same_bits(std::span(out).subspan(r * packed->n(), a.n), std::span(first).subspan(r * a.n, a.n)));
        EXPECT_TRUE(
            same_bits(std::span(out).subspan(r * packed->n() + a.n, b.n), std::span(second).subspan(r * b.n, b.n)));
      }
    }
  }
}

TEST(LinearOfBlocks, AFaultInAnInputMakesItsRowNanAndNoOther) {
  Random random(46);
  for (const BlockLayout& layout : backend::block_layouts()) {
    if (layout.is_in_floats()) continue;  // the input is taken as it is
    const Matrix w = random_blocks(random, layout, 20, 512);
    const std::vector<float> x = random.floats(std::size_t{5} * w.k);
    for (const std::string& isa : supported_isas()) {
      const auto ops = make_ops(isa, 1);
      const auto packed = pack_blocks(*ops, w, layout, Activation::kInt8);
      const std::vector<float> clean = run_linear(*ops, x, *packed, 5);
      for (const float fault : {NAN, std::numeric_limits<float>::infinity()}) {
        std::vector<float> broken = x;
        broken[2 * w.k + 300] = fault;
        const std::vector<float> out = run_linear(*ops, broken, *packed, 5);
        for (std::size_t i = 0; i < out.size(); ++i) {
          EXPECT_TRUE(i / w.n == 2 ? std::isnan(out[i]) : out[i] == clean[i]) << isa << " " << layout.name << " " << i;
        }
      }
    }
  }
}

TEST(LinearOfBlocks, AScaleThatIsNoNumberMakesItsOutputsNan) {
  Random random(47);
  for (const BlockLayout& layout : backend::block_layouts()) {
    if (halves_of(layout).empty()) continue;  // every byte of MXFP4 is a power of two
    Matrix w = random_blocks(random, layout, 20, 512);
    put_scale(layout, w.bits.data() + halves_of(layout).front(), std::numeric_limits<float>::quiet_NaN());
    const std::vector<float> x = random.floats(std::size_t{2} * w.k);
    for (const Activation activation : activations_of(layout)) {
      const auto ops = make_ops("auto", 1);
      const std::vector<float> out = run_linear(*ops, x, *pack_blocks(*ops, w, layout, activation), 2);
      for (std::size_t i = 0; i < out.size(); ++i) {
        EXPECT_EQ(std::isnan(out[i]), i % w.n == 0) << text_of(layout, activation) << " " << i;
      }
    }
  }
}

// An input is off by half a step at most: nothing else is rounded but sums in f32.
TEST(LinearOfBlocks, InIntegersIsWithinTheRoundingsOfTheInputs) {
  Random random(48);
  for (const BlockLayout& layout : backend::block_layouts()) {
    if (layout.is_in_floats()) continue;
    const Matrix w = random_blocks(random, layout, 64, 1024);
    const std::vector<float> x = random.floats(3 * std::size_t{w.k});
    const auto ops = make_ops("auto", 1);
    const std::vector<float> out = run_linear(*ops, x, *pack_blocks(*ops, w, layout, Activation::kInt8), 3);
    for (std::size_t i = 0; i < out.size(); ++i) {
      double exact = 0;
      double size = 0;
      for (std::size_t k = 0; k < w.k; ++k) {
        exact += double{x[i / w.n * w.k + k]} * w.values[i % w.n * w.k + k];
        size += std::abs(w.values[i % w.n * w.k + k]);
      }
      EXPECT_NEAR(out[i], exact, size * (0.5 / 127 + 1e-5)) << layout.name;
    }
  }
}

// A matrix in NVFP4 has a factor, which a product is multiplied by: in a weight of several matrices each its own.
TEST(LinearOfBlocks, MultipliesByTheFactorsOfTheirMatricesBeforeTheBias) {
  Random random(48);
  const BlockLayout& layout = backend::layout_of(BlockType::kNVFP4);
  constexpr std::uint32_t kInputs = 320;
  const Matrix first = random_blocks(random, layout, 19, kInputs);
  const Matrix second = random_blocks(random, layout, 30, kInputs);
  const float factors[] = {0.37f, -1.9f};
  const std::vector<float> x = random.floats(std::size_t{3} * kInputs);
  const std::vector<float> bias = random.floats(49);
  for (const Activation activation : activations_of(layout)) {
    std::vector<float> expected;
    const auto of_first = plain_linear_of_blocks(x, first, layout, activation, 3);
    const auto of_second = plain_linear_of_blocks(x, second, layout, activation, 3);
    for (std::size_t i = 0; i < 3 * 49; ++i) {
      const std::size_t n = i % 49;
      const float sum = n < 19 ? of_first[i / 49 * 19 + n] : of_second[i / 49 * 30 + n - 19];
      expected.push_back(sum * factors[n < 19 ? 0 : 1] + bias[n]);
    }
    backend::HostMatrix views[] = {first.view(), second.view()};
    for (int i = 0; i < 2; ++i) views[i].factor = factors[i];
    const std::span<const float> biases[] = {std::span(bias).first(19), std::span(bias).subspan(19)};
    for (const std::string& isa : supported_isas()) {
      const auto ops = make_ops(isa, 1);
      const auto weight = ops->pack(views, biases, Format::of_blocks(layout.type, activation));
      EXPECT_TRUE(same_bits(run_linear(*ops, x, *weight, 3), expected)) << isa << " " << text_of(layout, activation);
      const std::vector<float> rows = run_embed(*ops, *weight);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::size_t n = i / kInputs;
        const float number = n < 19 ? first.values[i] : second.values[i - std::size_t{19} * kInputs];
        ASSERT_EQ(rows[i], number * factors[n < 19 ? 0 : 1]) << i;
      }
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test::linear_blocks_test
