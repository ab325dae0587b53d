// Wakes the engine thread: a submission came, a stream has room again, a request was cancelled.
// Thread  ring(): any. wait_until(): the engine thread alone.
// Source  ours; the flag keeps ring() free of the mutex while the engine is awake.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "core/base/clock.h"

namespace quire::bridge {

class Doorbell {
 public:
  // Cheap while the engine is awake: one exchange.
  void ring();
  // Returns when rung since the last wait_until(), or at `deadline`.
  void wait_until(TimePoint deadline);

 private:
  // Written true by ring() (release), taken false by wait_until() (acquire): what the ringer did before is seen after.
  std::atomic<bool> rung_{false};
  // Written by the engine before it sleeps, read by ringers (both seq_cst with rung_): no ring is lost between check
  // and sleep.
  std::atomic<bool> sleeping_{false};
  std::mutex mutex_;
  std::condition_variable condition_;
};

}  // namespace quire::bridge
