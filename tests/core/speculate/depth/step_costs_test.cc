#include "core/speculate/depth/step_costs.h"

#include <gtest/gtest.h>

#include <string>

#include "core/speculate/depth/draft_costs.h"

namespace quire::speculate {
namespace {

constexpr StepPrior kPrior = {.weight_bytes = 2e9, .bytes_per_s = 1e10, .fmas_per_row = 1e9, .fmas_per_s = 4e10};

TEST(StepCosts, ExpectsTheLongerOfReadingAndComputing) {
  const StepCosts costs(kPrior);
  EXPECT_DOUBLE_EQ(costs.seconds(0), 0);
  EXPECT_DOUBLE_EQ(costs.seconds(1), 0.2);
  EXPECT_DOUBLE_EQ(costs.seconds(8), 0.2);
  EXPECT_DOUBLE_EQ(costs.seconds(64), 1.6);
}

TEST(StepCosts, ComeBackFromTheirText) {
  StepCosts costs(kPrior);
  for (int i = 0; i < 20; ++i) {
    costs.add(1, 0.3);
    costs.add(5, 0.31);
    costs.add(40, 1.7);
  }
  StepCosts again(kPrior);
  ASSERT_TRUE(again.read(costs.text()).ok());
  for (const double rows : {1.0, 3.0, 5.0, 17.0, 40.0, 200.0}) {
    EXPECT_NEAR(again.seconds(rows), costs.seconds(rows), 2e-3 * costs.seconds(rows)) << rows;
  }
  EXPECT_EQ(again.text(), costs.text());
}

TEST(StepCosts, RefuseATextThatIsNotTheirsAndStayAsTheyWere) {
  for (const char* text : {"1 0.5", "1 0.5 3 4\n", "0 0.5 3\n", "1 -0.5 3\n", "1 nan 3\n", "1 0.5 inf\n", "9999 1 1\n",
                           "1 0.5 3\nx\n", "\n", "1 0.5 0\n", "1 1e999 3\n"}) {
    StepCosts costs(kPrior);
    EXPECT_FALSE(costs.read(text).ok()) << text;
    EXPECT_EQ(costs.text(), "") << text;
  }
  EXPECT_TRUE(StepCosts(kPrior).read("").ok());
}

TEST(DraftCosts, AreLearnedBySizeAndCrowd) {
  DraftCosts costs({.seconds_per_call = 1, .seconds_per_node = 1});
  EXPECT_DOUBLE_EQ(costs.seconds(3, 1), 4);
  for (int i = 0; i < 10; ++i) {
    costs.add(1, 1, 0.01);
    costs.add(4, 1, 0.04);
    costs.add(4, 16, 0.2);
  }
  EXPECT_NEAR(costs.seconds(4, 1), 0.04, 0.004);
  EXPECT_NEAR(costs.seconds(2, 1), 0.02, 0.004);
  EXPECT_NEAR(costs.seconds(4, 15), 0.2, 0.01);
  EXPECT_NEAR(costs.seconds(4, 500), 0.2, 0.01);  // the nearest crowd that was seen
  EXPECT_EQ(costs.seconds(0, 4), 0);
  EXPECT_EQ(costs.seconds(4, 0), 0);
}

}  // namespace
}  // namespace quire::speculate
