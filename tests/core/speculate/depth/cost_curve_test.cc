#include "core/speculate/depth/cost_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace quire::speculate {
namespace {

double flat(double) { return 1; }
double linear(double x) { return x; }

TEST(CostCurve, IsItsPriorUntilSomethingIsMeasured) {
  const CostCurve curve([](double x) { return 2 + x; });
  for (const double x : {1.0, 1.5, 7.0, 100.0, 3000.0}) EXPECT_NEAR(curve.seconds(x), 2 + x, 1e-9);
  EXPECT_FALSE(curve.measured());
}

TEST(CostCurve, TakesTheScaleFromOneSizeAndTheShapeFromItsPrior) {
  CostCurve curve(linear);
  for (int i = 0; i < 10; ++i) curve.add(4, 0.04);
  EXPECT_NEAR(curve.seconds(4), 0.04, 1e-4);
  EXPECT_NEAR(curve.seconds(32), 0.32, 0.03);
}

TEST(CostCurve, FindsAShapeThatIsNotItsPriorsUnderNoise) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    CostCurve curve(flat);
    for (int i = 0; i < 40; ++i) {
      for (const std::uint32_t count : {1u, 3u, 9u, 27u}) {
        const double usual = std::exp(0.1 * std::normal_distribution<double>()(random));
        curve.add(count, count * usual * (std::bernoulli_distribution(0.2)(random) ? 3 : 1));
      }
    }
    const double one = curve.seconds(1);
    for (const std::uint32_t count : {2u, 3u, 5u, 9u, 14u, 27u})
      EXPECT_NEAR(curve.seconds(count) / one / count, 1, 0.15);
  }
}

TEST(CostCurve, NeverFalls) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    CostCurve curve(flat);
    for (int i = 0; i < 60; ++i) {
      const auto count = static_cast<std::uint32_t>(std::exp2(std::uniform_real_distribution<>(0, 12)(random)));
      curve.add(count, std::exp(std::normal_distribution<double>()(random)));
    }
    for (double x = 1; x < 4096; x *= 1.03) ASSERT_LE(curve.seconds(x), curve.seconds(x * 1.03) * (1 + 1e-9)) << seed;
  }
}

TEST(CostCurve, DoesNotBelieveASingleSurpriseButThree) {
  CostCurve curve(flat);
  for (int i = 0; i < 8; ++i) curve.add(1, 1);
  curve.add(6, 6);
  EXPECT_LT(curve.seconds(6), 1.5);
  curve.add(6, 6);
  curve.add(6, 6);
  EXPECT_GT(curve.seconds(6), 4);
}

TEST(CostCurve, FollowsAMachineThatGetsSlower) {
  CostCurve curve(flat);
  for (int i = 0; i < 100; ++i) curve.add(5, 1);
  for (int i = 0; i < 40; ++i) curve.add(5, 2);
  EXPECT_NEAR(curve.seconds(5), 2, 0.05);
}

TEST(CostCurve, PassesOverTimesThatAreNone) {
  CostCurve curve(flat);
  curve.add(0, 1);
  curve.add(1, 0);
  curve.add(1, -1);
  curve.add(1, std::nan(""));
  curve.add(1, INFINITY);
  EXPECT_FALSE(curve.measured());
  curve.add(100000, 1);  // more than the longest count is as that
  EXPECT_EQ(curve.weight_at(CostCurve::kLongestCount), 1);
}

TEST(CostCurve, HopesForLessWhereNobodyLookedAndNeverForLessThanASmallerSizeTakes) {
  CostCurve curve(linear);
  for (int i = 0; i < 10; ++i) curve.add(4, 4);
  for (int i = 0; i < 10; ++i) curve.add(16, 16);
  EXPECT_EQ(curve.hopeful_seconds(4), curve.seconds(4));
  EXPECT_LT(curve.hopeful_seconds(10), curve.seconds(10));
  for (double x = 4; x < 4096; x *= 1.1) EXPECT_GE(curve.hopeful_seconds(x), curve.seconds(4));
  for (double x = 17; x < 4096; x *= 1.1) EXPECT_GE(curve.hopeful_seconds(x), curve.seconds(16));
}

}  // namespace
}  // namespace quire::speculate
