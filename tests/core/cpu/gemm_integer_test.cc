// w8a8 and w4a8 where sums are largest, where groups end and where rows cannot be quantised: against the equations of
// core/backend/step_ops.h written out plainly, bit for bit, for every instruction set. quantize_test.cc has what all
// quantised weights must do.
#include <limits>

#include "tests/core/cpu/plain_quantised.h"

namespace quire::cpu::test::gemm_integer_test {
namespace {

constexpr std::optional<Format> kKinds[] = {Format::kW8A8, Format::kW8A8PerRow, Format::kW4A8};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

void expect_plain(const std::vector<float>& x, const Matrix& w, std::uint32_t rows, const std::string& what) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 1);
    for (const std::optional<Format> kind : kKinds) {
      EXPECT_TRUE(same_bits(run_linear(*ops, x, *pack(*ops, w, kind), rows), plain_linear(x, w, kind, rows)))
          << isa << " " << backend::name_of(kind.value_or(w.dtype)) << " " << what;
    }
  }
}

TEST(LinearInIntegers, EqualsThePlainLoopAroundEveryEndOfAGroup) {
  Random random(31);
  for (const std::uint32_t group : {32u, 64u, 256u, 512u, 768u}) {
    for (const std::uint32_t k : {group - 1, group, group + 1}) {
      for (const std::uint32_t rows : {1u, 5u, 13u}) {
        const Matrix w = random_matrix(random, 67, k, Format::kBF16);
        expect_plain(random.floats(std::size_t{rows} * k, 3.0f), w, rows,
                     "rows " + std::to_string(rows) + " k " + std::to_string(k));
      }
    }
  }
}

TEST(LinearInIntegers, SumsOfTheLargestCodesDoNotOverflow) {
  constexpr std::uint32_t kInputs = 520;
  constexpr std::uint32_t kRows = 7;
  // Weights of every pair of extremes by the parity of k: int4 has -8 and 7, int8 both ends; rows likewise.
  for (const float even : {-8.0f, 7.0f, 8.0f}) {
    for (const float odd : {-8.0f, 7.0f, 0.0f}) {
      std::vector<float> weights(std::size_t{33} * kInputs);
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = i % 2 == 0 ? even : odd;
      for (std::size_t i = 0; i < weights.size(); i += 32) weights[i] = -8.0f;  // so that 7 is a code
      const Matrix w = make_matrix(33, kInputs, Format::kF32, weights);
      std::vector<float> x(std::size_t{kRows} * kInputs);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t row = i / kInputs;
        const bool is_negative = row == 0 ? false : row == 1 ? true : row == 2 ? i % 2 == 0 : i / row % 2 == 0;
        x[i] = is_negative ? -2.0f : 2.0f;
      }
      expect_plain(x, w, kRows, std::to_string(even) + " and " + std::to_string(odd));
    }
  }
}

TEST(LinearInIntegers, ARowIsTheSameAloneAndAmongOthers) {
  constexpr std::uint32_t kRows = 40;
  Random random(5);
  const Matrix w = random_matrix(random, 83, 301, Format::kBF16);
  const std::vector<float> x = random.floats(std::size_t{kRows} * w.k);
  for (const std::string& isa : supported_isas()) {
    for (const std::optional<Format> kind : kKinds) {
      const auto ops = make_ops(isa, 1);
      const auto packed = pack(*ops, w, kind);
      const std::vector<float> all = run_linear(*ops, x, *packed, kRows);
      for (std::size_t r = 0; r < kRows; ++r) {
        const auto first = x.begin() + static_cast<std::ptrdiff_t>(r * w.k);
        const std::vector<float> row(first, first + w.k);
        EXPECT_TRUE(same_bits(run_linear(*ops, row, *packed, 1), std::span(all).subspan(r * w.n, w.n)))
            << isa << " row " << r;
      }
    }
  }
}

TEST(LinearInIntegers, AGroupOfZerosOrOfNumbersTooSmallForAScaleAddsNothing) {
  Random random(7);
  const Matrix w = random_matrix(random, 20, 600, Format::kF32);
  for (const float small : {0.0f, -0.0f, std::numeric_limits<float>::denorm_min(), 0x1p-122f, 0x1p-121f}) {
    std::vector<float> x = random.floats(w.k);
    std::fill(x.begin() + 256, x.begin() + 512, small);
    expect_plain(x, w, 1, std::to_string(small));
    std::fill(x.begin(), x.end(), small);
    expect_plain(x, w, 1, "all of them " + std::to_string(small));
  }
}

TEST(LinearInIntegers, TakesInputsOfAnySize) {
  Random random(8);
  const Matrix w = random_matrix(random, 20, 300, Format::kF32);
  for (const float size : {0x1p-120f, 0x1p-60f, 1.0f, 0x1p60f, 0x1p110f}) {
    expect_plain(random.floats(2 * std::size_t{w.k}, size), w, 2, std::to_string(size));
  }
}

TEST(LinearInIntegers, AFaultInAnyGroupMakesItsRowNanAndNoOther) {
  Random random(6);
  const Matrix w = random_matrix(random, 20, 600, Format::kF32);
  const std::vector<float> x = random.floats(std::size_t{13} * w.k);
  for (const std::string& isa : supported_isas()) {
    for (const std::optional<Format> kind : kKinds) {
      const auto ops = make_ops(isa, 1);
      const auto packed = pack(*ops, w, kind);
      const std::vector<float> clean = run_linear(*ops, x, *packed, 13);
      for (const float fault : {NAN, kInfinity, -kInfinity}) {
        for (const std::size_t at : {0u, 255u, 256u, 511u, 512u, 599u}) {
          std::vector<float> broken = x;
          broken[5 * w.k + at] = fault;
          const std::vector<float> out = run_linear(*ops, broken, *packed, 13);
          for (std::size_t i = 0; i < out.size(); ++i) {
            EXPECT_TRUE(i / w.n == 5 ? std::isnan(out[i]) : out[i] == clean[i]) << isa << " at " << at << " " << i;
          }
        }
      }
    }
  }
}

// Each rounding is off by half a step at most: of an input, of a weight (int4: quantize_test.cc), and of both at once.
TEST(LinearInIntegers, IsWithinTheRoundingsOfItsInputs) {
  Random random(9);
  const Matrix w = random_matrix(random, 64, 512, Format::kF32);
  const std::vector<float> x = random.floats(3 * std::size_t{w.k});
  const auto ops = make_ops("auto", 1);
  for (const std::optional<Format> kind : kKinds) {
    const std::vector<float> out = run_linear(*ops, x, *pack(*ops, w, kind), 3);
    const std::vector<float> stored = quantised(w, kind).widened();
    for (std::size_t i = 0; i < out.size(); ++i) {
      double exact = 0;
      double room = 1e-3;  // f32 sums of 16 groups or fewer, far below
      for (std::size_t k = 0; k < w.k; ++k) {
        const double weight = stored[i % w.n * w.k + k];
        exact += double{x[i / w.n * w.k + k]} * weight;
        room += std::abs(weight) * 0.5 / 127;
      }
      EXPECT_NEAR(out[i], exact, room);
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test::gemm_integer_test
