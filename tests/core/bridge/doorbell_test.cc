#include "core/bridge/doorbell.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/core/bridge/bells.h"

namespace quire::bridge {
namespace {

TEST(Doorbell, RemembersARingFromBeforeTheWait) {
  Doorbell bell;
  bell.ring();
  EXPECT_TRUE(rings(bell));
}

TEST(Doorbell, ManyRingsAreOne) {
  Doorbell bell;
  for (int i = 0; i < 3; ++i) bell.ring();
  EXPECT_TRUE(rings(bell));
  EXPECT_TRUE(silent(bell));
}

TEST(Doorbell, ReturnsAtItsDeadlineWhenNobodyRings) {
  Doorbell bell;
  for (const auto wait : {std::chrono::milliseconds(0), std::chrono::milliseconds(10)}) {
    const TimePoint deadline = in(wait);
    bell.wait_until(deadline);
    EXPECT_GE(SteadyClock().now(), deadline);
  }
}

TEST(Doorbell, WaitsForEverWhereTheDeadlineIsTheEndOfTime) {
  Doorbell bell;
  std::jthread ringer([&] { bell.ring(); });
  bell.wait_until(TimePoint::max());
}

TEST(Doorbell, ShowsWhatTheRingerDidBefore) {
  Doorbell bell;
  for (int i = 0; i < 2000 / kStressDivisor; ++i) {
    int written = 0;  // plain: the bell alone orders it
    std::jthread ringer([&] {
      written = 1;
      bell.ring();
    });
    ASSERT_TRUE(rings(bell));
    ASSERT_EQ(written, 1);
  }
}

TEST(Doorbell, LosesNoRingInAMillionPingPongs) {
  constexpr int kRounds = 500'000 / kStressDivisor;  // two rings each
  Doorbell ping;
  Doorbell pong;
  std::atomic<int> served{0};  // relaxed: the bells order it
  std::jthread player([&] {
    for (int i = 1; i <= kRounds; ++i) {
      while (served.load(std::memory_order_relaxed) < i) {
        if (!rings(ping)) return;
      }
      pong.ring();
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    served.store(i, std::memory_order_relaxed);
    ping.ring();
    ASSERT_TRUE(rings(pong)) << "round " << i;
  }
}

// The ring may come at any instant of falling asleep and of timing out: whatever happens, the next wait sees it.
TEST(Doorbell, LosesNoRingAroundAShortDeadline) {
  constexpr int kRounds = 20'000 / kStressDivisor;
  Doorbell bell;
  std::atomic<int> asked{0};
  std::atomic<int> rung{0};
  std::jthread ringer([&] {
    for (int i = 1; i <= kRounds; ++i) {
      asked.wait(i - 1);
      rung.store(i, std::memory_order_relaxed);
      bell.ring();
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    asked.store(i);
    asked.notify_one();
    const TimePoint lost = in(kLost);
    while (rung.load(std::memory_order_relaxed) < i) {
      bell.wait_until(in(std::chrono::microseconds(i % 50)));
      ASSERT_LT(SteadyClock().now(), lost) << "round " << i;
    }
  }
}

}  // namespace
}  // namespace quire::bridge
