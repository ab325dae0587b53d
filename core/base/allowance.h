// A budget of CPU time for one piece of work, which can also be dropped. Long work calls spend() every few microseconds
// and returns early once that is false; its result is then incomplete.
// Shape   a step is some 10 to 100 ns of work. Time is CPU time of the working thread, so that a busy machine ends no
//         work sooner.
// Owner   the caller of the work.
// Thread  the working thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/base/processor_time.h"

namespace quire {

class Allowance {
 public:
  enum class End : std::uint8_t { kNone, kTime, kDropped };

  Allowance() = default;  // no limit
  explicit Allowance(std::chrono::nanoseconds time, std::function<bool()> is_dropped = {})
      : until_(processor_time() + time), is_dropped_(std::move(is_dropped)) {}

  // Called before the next `steps` steps. False: the time is over or the work is dropped; the caller stops.
  bool spend(std::size_t steps = 1) {
    if (steps < left_) {
      left_ -= steps;
      return true;
    }
    return look();
  }
  End end() const { return end_; }  // why spend() returned false; kNone if it did not
  std::chrono::nanoseconds time_left() const { return until_ - processor_time(); }
  const std::function<bool()>& is_dropped() const { return is_dropped_; }

 private:
  static constexpr std::size_t kSteps = 4096;  // steps from one look() to the next

  bool look() {
    if (end_ == End::kNone && is_dropped_ && is_dropped_()) end_ = End::kDropped;
    if (end_ == End::kNone && processor_time() > until_) end_ = End::kTime;
    left_ = end_ == End::kNone ? kSteps : 0;
    return end_ == End::kNone;
  }

  std::chrono::nanoseconds until_ = std::chrono::hours(24 * 365 * 100);
  std::function<bool()> is_dropped_;
  std::size_t left_ = 0;  // steps until the next look()
  End end_ = End::kNone;
};

}  // namespace quire
