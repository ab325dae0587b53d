// Health of the engine: a heartbeat for the liveness probe, the phase of the iteration under way, and failure.
// Thread  beat(), enter(), fail(): engine. All else: any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <limits>

#include "core/base/clock.h"

namespace quire::bridge {

class EngineStatus {
 public:
  // The phases of an iteration (core/engine/step.cc).
  enum class Phase : std::uint8_t { kAdmitting, kOrders, kDrafting, kPlanning, kComputing, kTelling, kNumPhases };
  static const char* name_of(Phase phase) {
    constexpr const char* kNames[] = {"admitting requests", "saving or loading the cache",
                                      "drafting",           "planning the next step",
                                      "computing a step",   "telling streams"};
    static_assert(std::size(kNames) == static_cast<std::size_t>(Phase::kNumPhases));
    return kNames[static_cast<std::size_t>(phase)];
  }

  // Called by the engine at the start of each iteration, and before and after it sleeps.
  void beat(TimePoint now, bool asleep) {
    last_beat_ns_.store(asleep ? kAsleep : now.time_since_epoch().count(), std::memory_order_release);
  }
  void enter(Phase phase) { phase_.store(phase, std::memory_order_relaxed); }
  void fail() { failed_.store(true, std::memory_order_release); }

  // Phase of the iteration under way; if stuck_for() is long, the phase that the engine is stuck in.
  Phase phase() const { return phase_.load(std::memory_order_relaxed); }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Time since the last heartbeat; zero while the engine sleeps because it has nothing to do.
  Duration stuck_for(TimePoint now) const {
    const std::int64_t last = last_beat_ns_.load(std::memory_order_acquire);
    if (last == kAsleep) return Duration::zero();
    return std::max(now.time_since_epoch() - Duration(last), Duration::zero());
  }

 private:
  static constexpr std::int64_t kAsleep = std::numeric_limits<std::int64_t>::min();
  // Time of the last heartbeat, or kAsleep; one word, so that a reader never sees a time without its state.
  std::atomic<std::int64_t> last_beat_ns_{kAsleep};
  std::atomic<Phase> phase_{Phase::kAdmitting};  // relaxed: for messages only
  std::atomic<bool> failed_{false};
};

}  // namespace quire::bridge
