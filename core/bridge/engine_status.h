// What the engine says of itself to whoever asks, without being asked: alive, failed, and what it is doing.
// Thread  written by the engine, read by any: one heartbeat that liveness looks at, and what the turn has come to.
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
  // The stages of a turn, as engine/step.cc has them.
  enum class Phase : std::uint8_t { kAdmitting, kOrders, kDrafting, kPlanning, kComputing, kTelling, kNumPhases };
  static const char* name_of(Phase phase) {
    constexpr const char* kNames[] = {"admitting requests", "saving or loading the cache",
                                      "drafting",           "planning the next step",
                                      "computing a step",   "telling streams"};
    static_assert(std::size(kNames) == static_cast<std::size_t>(Phase::kNumPhases));
    return kNames[static_cast<std::size_t>(phase)];
  }

  // The engine calls it at every turn, and before and after it sleeps.
  void beat(TimePoint now, bool asleep) {
    last_beat_ns_.store(asleep ? kAsleep : now.time_since_epoch().count(), std::memory_order_release);
  }
  void enter(Phase phase) { phase_.store(phase, std::memory_order_relaxed); }
  void fail() { failed_.store(true, std::memory_order_release); }

  Phase phase() const { return phase_.load(std::memory_order_relaxed); }  // of the turn, where it is stuck
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
  std::atomic<Phase> phase_{Phase::kAdmitting};  // relaxed: a word for people
  std::atomic<bool> failed_{false};
};

}  // namespace quire::bridge
