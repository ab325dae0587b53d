#include "core/base/allowance.h"

#include <gtest/gtest.h>

#include <chrono>

namespace quire {
namespace {

using namespace std::chrono_literals;

TEST(Allowance, HasNoEndUnlessItIsGivenOne) {
  Allowance allowance;
  for (int i = 0; i < 1'000'000; ++i) ASSERT_TRUE(allowance.spend(100));
  EXPECT_EQ(allowance.end(), Allowance::End::kNone);
}

TEST(Allowance, EndsWithItsProcessorTimeAndStaysEnded) {
  const auto begun = processor_time();
  Allowance allowance(5ms);
  while (allowance.spend()) continue;
  EXPECT_GE(processor_time() - begun, 5ms);
  EXPECT_EQ(allowance.end(), Allowance::End::kTime);
  for (int i = 0; i < 10'000; ++i) ASSERT_FALSE(allowance.spend());
  EXPECT_LT(allowance.time_left(), 0ns);
}

TEST(Allowance, EndsOnceNobodyWaits) {
  bool dropped = false;
  Allowance allowance(1h, [&dropped] { return dropped; });
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(allowance.spend());
  dropped = true;
  while (allowance.spend()) continue;
  EXPECT_EQ(allowance.end(), Allowance::End::kDropped);
}

TEST(Allowance, LargeStepsAreLookedAtAtOnce) {
  bool dropped = true;
  Allowance allowance(1h, [&dropped] { return dropped; });
  EXPECT_FALSE(allowance.spend(1'000'000));
}

}  // namespace
}  // namespace quire
