#include "core/base/clock.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

using namespace std::chrono_literals;

TEST(FakeClock, StandsStillUntilItIsMoved) {
  FakeClock clock;
  const TimePoint before = clock.now();
  EXPECT_EQ(clock.now(), before);
  clock.advance(1500ms);
  EXPECT_EQ(clock.now() - before, 1'500'000'000ns);
}

TEST(SteadyClock, NeverGoesBack) {
  const SteadyClock clock;
  TimePoint last = clock.now();
  for (int i = 0; i < 10000; ++i) {
    const TimePoint now = clock.now();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace quire
