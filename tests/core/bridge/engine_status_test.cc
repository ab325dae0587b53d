#include "core/bridge/engine_status.h"

#include <gtest/gtest.h>

namespace quire::bridge {
namespace {

using namespace std::chrono_literals;

TEST(EngineStatus, IsNotStuckBeforeItsFirstIterationNorWhileItSleeps) {
  EngineStatus status;
  FakeClock clock;
  clock.advance(100s);
  EXPECT_EQ(status.stuck_for(clock.now()), 0s);
  status.beat(clock.now(), true);
  clock.advance(1h);
  EXPECT_EQ(status.stuck_for(clock.now()), 0s);
}

TEST(EngineStatus, IsStuckForTheTimeSinceItsLastIteration) {
  EngineStatus status;
  FakeClock clock;
  clock.advance(100s);
  status.beat(clock.now(), false);
  EXPECT_EQ(status.stuck_for(clock.now()), 0s);
  clock.advance(7s);
  EXPECT_EQ(status.stuck_for(clock.now()), 7s);
  status.beat(clock.now(), false);
  EXPECT_EQ(status.stuck_for(clock.now()), 0s);
}

TEST(EngineStatus, AReaderWithAnOlderTimeSeesNoNegativeOne) {
  EngineStatus status;
  FakeClock clock;
  const TimePoint before = clock.now();
  clock.advance(1s);
  status.beat(clock.now(), false);
  EXPECT_EQ(status.stuck_for(before), 0s);
}

TEST(EngineStatus, NamesEveryPhaseOfAIteration) {
  EngineStatus status;
  for (int i = 0; i < static_cast<int>(EngineStatus::Phase::kNumPhases); ++i) {
    const auto phase = static_cast<EngineStatus::Phase>(i);
    status.enter(phase);
    EXPECT_EQ(status.phase(), phase);
    EXPECT_STRNE(EngineStatus::name_of(phase), "");
  }
}

TEST(EngineStatus, StaysFailed) {
  EngineStatus status;
  EXPECT_FALSE(status.failed());
  status.fail();
  status.beat(TimePoint{} + 1s, false);
  EXPECT_TRUE(status.failed());
}

}  // namespace
}  // namespace quire::bridge
