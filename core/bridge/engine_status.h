// What the engine says of itself to whoever asks, without being asked: alive, failed, how many steps.
// Thread  written by the engine, read by any: relaxed counters, and one heartbeat that liveness looks at.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "core/base/clock.h"

namespace quire::bridge {

class EngineStatus {
 public:
  // The engine calls it at every turn, and before and after it sleeps.
  void beat(TimePoint now, bool asleep) {
    last_beat_ns_.store(asleep ? kAsleep : now.time_since_epoch().count(), std::memory_order_release);
  }
  void fail() { failed_.store(true, std::memory_order_release); }

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Time since the last turn; zero while it sleeps for want of work.
  Duration stuck_for(TimePoint now) const {
    const std::int64_t last = last_beat_ns_.load(std::memory_order_acquire);
    if (last == kAsleep) return Duration::zero();
    return std::max(now.time_since_epoch() - Duration(last), Duration::zero());
  }

 private:
  static constexpr std::int64_t kAsleep = std::numeric_limits<std::int64_t>::min();
  // Time of the last beat, or kAsleep: one word, so that a reader never sees half of a wake-up.
  std::atomic<std::int64_t> last_beat_ns_{kAsleep};
  std::atomic<bool> failed_{false};
};

}  // namespace quire::bridge
