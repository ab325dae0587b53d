// Wakes the engine thread: a submission came, a stream has room again, a request was cancelled. And counts its steps, so that who
// rings can be told how many went by.
// Thread  ring(), num_steps(): any. wait_until(), note_step(): the engine thread alone.
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
  // Cheap while the engine is awake: one exchange.
  void ring();
  // Returns when rung since the last wait_until(), or at `deadline`.
  void wait_until(TimePoint deadline);

  void note_step() { num_steps_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t num_steps() const { return num_steps_.load(std::memory_order_relaxed); }

 private:
  // Written true by ring() (release), taken false by wait_until() (acquire): what the ringer did before is seen after.
  std::atomic<bool> rung_{false};
  // Written by the engine before it sleeps, read by ringers (both seq_cst with rung_): no ring is lost between check
  // and sleep.
  std::atomic<bool> sleeping_{false};
  std::atomic<std::uint64_t> num_steps_{0};  // written by the engine, read by any: relaxed, a figure
  std::mutex mutex_;
  std::condition_variable condition_;
};

}  // namespace quire::bridge
