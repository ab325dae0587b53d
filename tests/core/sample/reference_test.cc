#include "core/sample/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/core/sample/rows.h"

namespace quire::sample::reference_test {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kClose = 1e-7;  // logits are f32: log(0.125f) is good to 2^-24 relative

std::vector<float> logs_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

// 1/2, 1/4, 1/8, 1/8: sums that can be done by hand.
const std::vector<float> kHalves = logs_of({0.125, 0.5, 0.25, 0.125});

auto near(double p) { return DoubleNear(p, kClose); }

TEST(ReferenceDistribution, IsSoftmaxWithoutFilters) {
  EXPECT_THAT(reference_distribution(kHalves, {}), ElementsAre(near(0.125), near(0.5), near(0.25), near(0.125)));
}

TEST(ReferenceDistribution, SharpensWithTemperature) {
  Params params;
  params.temperature = 0.5f;  // p squared, normalised: 1, 16, 4, 1 of 22
  EXPECT_THAT(reference_distribution(kHalves, params),
              ElementsAre(near(1 / 22.), near(16 / 22.), near(4 / 22.), near(1 / 22.)));
}

TEST(ReferenceDistribution, GreedyIsTheFirstOfTheHighest) {
  Params params;
  params.temperature = 0.0f;
  EXPECT_THAT(reference_distribution(std::vector<float>{1, 3, 3, 2}, params), ElementsAre(0, 1, 0, 0));
}

TEST(ReferenceDistribution, TopKKeepsTies) {
  Params params;
  params.top_k = 2;
  EXPECT_THAT(reference_distribution(kHalves, params), ElementsAre(0, near(2 / 3.), near(1 / 3.), 0));
  params.top_k = 3;
  EXPECT_THAT(reference_distribution(kHalves, params), ElementsAre(near(0.125), near(0.5), near(0.25), near(0.125)));
}

TEST(ReferenceDistribution, TopPIsTheSmallestSetThatReachesTheMass) {
  Params params;
  params.top_p = 0.49f;
  EXPECT_THAT(reference_distribution(kHalves, params), ElementsAre(0, 1, 0, 0));
  params.top_p = 0.51f;
  EXPECT_THAT(reference_distribution(kHalves, params), ElementsAre(0, near(2 / 3.), near(1 / 3.), 0));
  params.top_p = 0.76f;  // one of the two eighths would do; ties stay together
  EXPECT_THAT(reference_distribution(kHalves, params), ElementsAre(near(0.125), near(0.5), near(0.25), near(0.125)));
}

TEST(ReferenceDistribution, MinPIsRelativeToTheLikeliest) {
  Params params;
  params.min_p = 0.3f;
  EXPECT_THAT(reference_distribution(kHalves, params), ElementsAre(0, near(2 / 3.), near(1 / 3.), 0));
  params.min_p = 1.0f;
  EXPECT_THAT(reference_distribution(kHalves, params), ElementsAre(0, 1, 0, 0));
}

TEST(ReferenceDistribution, TypicalIsTheSmallestSetAroundTheEntropyThatReachesTheMass) {
  // The entropy is 1.75 bits: a half is 0.75 away, a quarter 0.25, an eighth 1.25.
  Params params;
  params.typical_p = 0.24f;
  EXPECT_THAT(reference_distribution(kHalves, params), ElementsAre(0, 0, near(1), 0));
  params.typical_p = 0.26f;
  EXPECT_THAT(reference_distribution(kHalves, params), ElementsAre(0, near(2 / 3.), near(1 / 3.), 0));
  params.typical_p = 0.76f;  // one of the two eighths would do; ties stay together
  EXPECT_THAT(reference_distribution(kHalves, params), ElementsAre(near(0.125), near(0.5), near(0.25), near(0.125)));
}

TEST(ReferenceDistribution, TopPCountsOnlyWhatTopKKept) {
  Params params;
  params.top_k = 2;     // 2/3 and 1/3 are left
  params.top_p = 0.6f;  // of the whole row it would take the quarter too
  EXPECT_THAT(reference_distribution(kHalves, params), ElementsAre(0, 1, 0, 0));
}

TEST(ReferenceDistribution, IsEmptyForWhatIsNotFinite) {
  EXPECT_THAT(reference_distribution(std::vector<float>{0, kNan}, {}), IsEmpty());
  EXPECT_THAT(reference_distribution(std::vector<float>{0, kInf}, {}), IsEmpty());
  EXPECT_THAT(reference_distribution(std::vector<float>{-kInf, -kInf}, {}), IsEmpty());
  EXPECT_THAT(reference_distribution(std::vector<float>{-kInf, 2}, {}), ElementsAre(0, 1));
}

TEST(ReferenceLogprobs, AreTheLogsOfTheProbabilities) {
  EXPECT_THAT(reference_logprobs(kHalves),
              ElementsAre(near(std::log(0.125)), near(std::log(0.5)), near(std::log(0.25)), near(std::log(0.125))));
  EXPECT_THAT(reference_logprobs(std::vector<float>{-kInf, 2}), ElementsAre(-kInf, 0));
}

TEST(ReferenceLogprobs, AreEmptyForWhatIsNotFinite) {
  EXPECT_THAT(reference_logprobs(std::vector<float>{0, kNan}), IsEmpty());
  EXPECT_THAT(reference_logprobs(std::vector<float>{0, kInf}), IsEmpty());
  EXPECT_THAT(reference_logprobs(std::vector<float>{-kInf, -kInf}), IsEmpty());
}

}  // namespace
}  // namespace quire::sample::reference_test
