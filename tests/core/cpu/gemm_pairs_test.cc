// w16a16 against the equations of core/backend/step_ops.h written out plainly, bit for bit, for every instruction set.
#include <cmath>
#include <limits>

#include "tests/core/cpu/plain_quantised.h"

namespace quire::cpu::test::gemm_pairs_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

void expect_plain(const std::vector<float>& x, const Matrix& w, std::uint32_t rows, const std::string& what) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 1);
    EXPECT_TRUE(same_bits(run_linear(*ops, x, *pack(*ops, w, Format::kW16A16), rows),
                          plain_linear(x, w, Format::kW16A16, rows)))
        << isa << " " << what;
  }
}

TEST(LinearInBf16, EqualsThePlainLoopForEveryNumberOfRows) {
  Random random(1);
  const Matrix w = random_matrix(random, 100, 103, Format::kBF16);
  for (std::uint32_t rows = 1; rows <= 40; ++rows) {
    expect_plain(random.floats(std::size_t{rows} * w.k, 3.0f), w, rows, std::to_string(rows) + " rows");
  }
}

TEST(LinearInBf16, EqualsThePlainLoopForEveryRemainderOfOutputsAndInputs) {
  Random random(2);
  for (std::uint32_t i = 1; i <= 50; ++i) {
    for (const std::uint32_t rows : {1u, 7u}) {
      const Matrix w = random_matrix(random, i, 51 - i, Format::kBF16);
      expect_plain(random.floats(std::size_t{rows} * w.k), w, rows, std::to_string(i) + " outputs");
    }
  }
}

TEST(LinearInBf16, RoundsWeightsOfEveryTypeToTheNearest) {
  Random random(3);
  for (const Format dtype : {Format::kF32, Format::kBF16, Format::kF16}) {
    const Matrix w = random_matrix(random, 33, 1537, dtype);
    expect_plain(random.floats(std::size_t{29} * w.k), w, 29, backend::name_of(dtype));
    for (const std::string& isa : supported_isas()) {
      const auto ops = make_ops(isa, 1);
      const auto packed = pack(*ops, w, Format::kW16A16);
      EXPECT_TRUE(same_bits(run_embed(*ops, *packed), quantised(w, Format::kW16A16).widened())) << isa;
    }
  }
}

// Halves of the last place, both ways to even.
TEST(LinearInBf16, RoundsRowsToTheNearestAndTiesToEven) {
  Matrix w = make_matrix(16, 2, Format::kF32, std::vector<float>(32, 1.0f));
  for (const float x : {0x1.01p0f, 0x1.03p0f, 0x1.010002p0f, 0x1.00fffep0f, -0x1.01p0f, 0x1.fffffep127f}) {
    expect_plain({x, 0.0f}, w, 1, std::to_string(x));
  }
  const auto ops = make_ops("auto", 1);
  const auto packed = pack(*ops, w, Format::kW16A16);
  EXPECT_EQ(run_linear(*ops, {0x1.01p0f, 0.0f}, *packed, 1)[0], 1.0f);
  EXPECT_EQ(run_linear(*ops, {0x1.03p0f, 0.0f}, *packed, 1)[0], 0x1.04p0f);
}

TEST(LinearInBf16, TakesNumbersOfAnySizeAndSubnormalsForZeros) {
  Random random(4);
  for (const float of_w : {0x1p-126f, 0x1p-100f, 1.0f, 0x1p60f}) {
    const Matrix w = random_matrix(random, 20, 300, Format::kF32, of_w);
    for (const float size : {0x1p-140f, 0x1p-126f, 0x1p-60f, 0x1p-26f, 1.0f, 0x1p60f}) {
      expect_plain(random.floats(2 * std::size_t{w.k}, size), w, 2, std::to_string(size));
    }
  }
}

TEST(LinearInBf16, AFaultMakesItsRowNanAndNoOther) {
  Random random(5);
  const Matrix w = random_matrix(random, 20, 301, Format::kBF16);
  const std::vector<float> x = random.floats(std::size_t{13} * w.k);
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 1);
    const auto packed = pack(*ops, w, Format::kW16A16);
    const std::vector<float> clean = run_linear(*ops, x, *packed, 13);
    for (const std::size_t at : {0u, 1u, 300u}) {
      std::vector<float> broken = x;
      broken[5 * w.k + at] = NAN;
      const std::vector<float> out = run_linear(*ops, broken, *packed, 13);
      for (std::size_t i = 0; i < out.size(); ++i) {
        EXPECT_TRUE(i / w.n == 5 ? std::isnan(out[i]) : out[i] == clean[i]) << isa << " at " << at << " " << i;
      }
      broken[5 * w.k + at] = kInfinity;
      const std::vector<float> infinite = run_linear(*ops, broken, *packed, 13);
      for (std::size_t i = 5 * w.n; i < 6 * w.n; ++i) EXPECT_FALSE(std::isfinite(infinite[i])) << isa;
    }
  }
}

TEST(LinearInBf16, LeavesTheFloatingPointModeAsItWas) {
  Random random(6);
  const Matrix w = random_matrix(random, 20, 30, Format::kBF16);
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 1);
    run_linear(*ops, random.floats(w.k), *pack(*ops, w, Format::kW16A16), 1);
    volatile float small = std::numeric_limits<float>::min();
    EXPECT_GT(small * 0.5f, 0.0f) << isa;
  }
}

}  // namespace
}  // namespace quire::cpu::test::gemm_pairs_test
