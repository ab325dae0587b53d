// Helpers of stress tests: the number of rounds, and the time after which a wake-up counts as lost.
#pragma once

#include <chrono>
#include <thread>

#include "core/base/clock.h"

namespace quire::concurrent {

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

}  // namespace quire::concurrent
