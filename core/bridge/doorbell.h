// Wakes the engine thread: a submission or a control order has arrived, a full stream has room again, a request was
// cancelled. Also counts the engine's steps, in which the time from a cancellation to its effect is measured.
// Thread  ring(), num_steps(): any. wait_until(), note_step(): engine.
// Source  ours; the flag keeps ring() free of the mutex while the engine is awake.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "core/base/clock.h"

namespace quire::bridge {

class Doorbell {
 public:
  // Cheap while the engine is awake: one exchange and at most one load, no mutex.
  void ring();
  // Returns once ring() was called since the last wait_until(), or at `deadline`; TimePoint::max(): no deadline.
  void wait_until(TimePoint deadline);

  void note_step() { num_steps_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t num_steps() const { return num_steps_.load(std::memory_order_relaxed); }

 private:
  // Set by ring(), cleared by wait_until() (seq_cst): after wait_until() the engine sees all that the ringing thread
  // did before ring().
  std::atomic<bool> rung_{false};
  // Written by the engine before it sleeps, read by ring() (seq_cst, ordered with rung_): no ring is lost between the
  // engine's check of rung_ and its sleep.
  std::atomic<bool> sleeping_{false};
  std::atomic<std::uint64_t> num_steps_{0};  // written by the engine, read by any; relaxed: a metric
  std::mutex mutex_;
  std::condition_variable condition_;
};

}  // namespace quire::bridge
