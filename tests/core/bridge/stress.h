// What the stress tests of the bridge share: how hard to try, and how long to wait before a wake-up counts as lost.
#pragma once

#include <chrono>
#include <thread>

#include "core/bridge/doorbell.h"

namespace quire::bridge {

#ifdef QUIRE_THREAD_SANITIZER
inline constexpr int kStressDivisor = 10;  // the thread sanitizer is about ten times slower
#else
inline constexpr int kStressDivisor = 1;
#endif

inline constexpr std::chrono::seconds kLost{60};

inline TimePoint in(Duration duration) { return SteadyClock().now() + duration; }

// Waits close by, so that two threads meet within nanoseconds; lets others run where there are too few cores.
template <typename Done>
void spin_until(Done done) {
  for (int spins = 0; !done(); ++spins) {
    if (spins > 2000) std::this_thread::yield();
  }
}

// Whether the bell rings before a wake-up counts as lost. Takes the ring.
inline bool rings(Doorbell& bell) {
  const TimePoint deadline = in(kLost);
  bell.wait_until(deadline);
  return SteadyClock().now() < deadline;
}

// Whether nobody has rung. Takes the ring, if there was one.
inline bool silent(Doorbell& bell) {
  const TimePoint deadline = in(std::chrono::milliseconds(5));
  bell.wait_until(deadline);
  return SteadyClock().now() >= deadline;
}

}  // namespace quire::bridge
