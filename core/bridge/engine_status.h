// What the engine says of itself to whoever asks, without being asked: alive, failed, how many steps.
// Thread  written by the engine, read by any: relaxed counters, and one heartbeat that liveness looks at.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/clock.h"

namespace quire::bridge {

class EngineStatus {
 public:
  // The engine calls it at every turn, and before and after it sleeps.
  void beat(TimePoint now, bool asleep) {
    asleep_.store(asleep, std::memory_order_relaxed);
    last_beat_ns_.store(now.time_since_epoch().count(), std::memory_order_release);
  }
  void fail() { failed_.store(true, std::memory_order_release); }

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Time since the last turn; zero while it sleeps for want of work.
  Duration stuck_for(TimePoint now) const {
    const Duration since = now.time_since_epoch() - Duration(last_beat_ns_.load(std::memory_order_acquire));
    return asleep_.load(std::memory_order_relaxed) || since < Duration::zero() ? Duration::zero() : since;
  }

 private:
  std::atomic<std::int64_t> last_beat_ns_{0};
  std::atomic<bool> asleep_{true};
  std::atomic<bool> failed_{false};
};

}  // namespace quire::bridge
