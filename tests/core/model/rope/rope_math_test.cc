#include "core/model/rope/rope_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace quire::model::rope_math::rope_math_test {
namespace {

constexpr double kUlp = 0x1p-53;  // half a unit in the last place, relative

// Same numbers on every run and machine.
class Uniform {
 public:
  double operator()(double low, double high) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * (static_cast<double>(state_ >> 11) * 0x1p-53);
  }

 private:
  std::uint64_t state_ = 7;
};

double relative(double found, long double expected) {
  return static_cast<double>(std::fabs((static_cast<long double>(found) - expected) / expected));
}

TEST(RopeMath, SinAndCosAreWithinThreeHalfUlpsOfOneForEveryAngleARopeCanHave) {
  Uniform uniform;
  double worst = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const double limit = std::exp2(uniform(-20, 22));
    const double angle = static_cast<float>(uniform(0, limit));
    const SinCos found = sin_cos(angle);
    worst = std::max(worst, static_cast<double>(std::fabs(found.sin - std::sin(static_cast<long double>(angle)))));
    worst = std::max(worst, static_cast<double>(std::fabs(found.cos - std::cos(static_cast<long double>(angle)))));
  }
  EXPECT_LT(worst, 3 * kUlp);
}

// Where the argument is nearly a multiple of pi/2 the result is tiny; its relative accuracy shows the reduction.
TEST(RopeMath, ReductionKeepsTheRelativeAccuracyOfTinyResults) {
  double worst = 0;
  for (int q = 1; q < 2'600'000; q += 13) {
    const double angle = static_cast<float>(q * 1.5707963267948966);
    const SinCos found = sin_cos(angle);
    const double tiny = q % 2 == 0 ? found.sin : found.cos;
    const long double expected =
        q % 2 == 0 ? std::sin(static_cast<long double>(angle)) : std::cos(static_cast<long double>(angle));
    worst = std::max(worst, relative(tiny, expected));
  }
  EXPECT_LT(worst, 1e-15);
}

TEST(RopeMath, SinIsOddCosIsEvenAndZeroIsExact) {
  EXPECT_EQ(sin_cos(0.0).sin, 0.0);
  EXPECT_EQ(sin_cos(0.0).cos, 1.0);
  for (const double angle : {0.3, 1.0, 2.0, 4.0, 5.5, 1000.25}) {
    EXPECT_EQ(sin_cos(-angle).sin, -sin_cos(angle).sin);
    EXPECT_EQ(sin_cos(-angle).cos, sin_cos(angle).cos);
  }
}

TEST(RopeMath, LogIsAccurate) {
  Uniform uniform;
  double worst = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const double x = std::exp2(uniform(-60, 60));
    if (x == 1.0) continue;
    worst = std::max(worst, relative(log(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 3 * kUlp);
  EXPECT_EQ(log(1.0), 0.0);
}

TEST(RopeMath, ExpIsAccurate) {
  Uniform uniform;
  double worst = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const double x = uniform(-600, 600);
    worst = std::max(worst, relative(exp(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 4 * kUlp);
  EXPECT_EQ(exp(0.0), 1.0);
}

TEST(RopeMath, PowIsAccurateForBasesAndExponentsOfRope) {
  Uniform uniform;
  double worst = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const double base = std::exp2(uniform(1, 50));
    const double exponent = uniform(0, 1);
    const long double expected = std::pow(static_cast<long double>(base), static_cast<long double>(exponent));
    worst = std::max(worst, relative(pow(base, exponent), expected));
  }
  EXPECT_LT(worst, 4 * kUlp);
  EXPECT_EQ(pow(10000.0, 0.0), 1.0);
  EXPECT_EQ(pow(10000.0, 0.5), 100.0);
}

}  // namespace
}  // namespace quire::model::rope_math::rope_math_test
