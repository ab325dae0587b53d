// Stress tests of the doorbell: helpers that wait for a ring.
#pragma once

#include "core/bridge/doorbell.h"
#include "tests/core/concurrent/stress.h"

namespace quire::bridge {

using concurrent::in;
using concurrent::kLost;
using concurrent::kStressDivisor;
using concurrent::spin_until;

// True if the bell rings before a wake-up counts as lost. Takes the ring.
inline bool rings(Doorbell& bell) {
  const TimePoint deadline = in(kLost);
  bell.wait_until(deadline);
  return SteadyClock().now() < deadline;
}

// True if the bell does not ring. Takes the ring, if there was one.
inline bool silent(Doorbell& bell) {
  const TimePoint deadline = in(std::chrono::milliseconds(5));
  bell.wait_until(deadline);
  return SteadyClock().now() >= deadline;
}

}  // namespace quire::bridge
