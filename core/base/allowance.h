// The time of a processor that one piece of work may still use, and whether it is still wanted. Work that can take
// long asks every few microseconds, and ends early once the answer is no: what it has made until then is not whole.
// Shape   a step is some 10 to 100 ns of work. Time is this thread's of the processor: a busy machine ends nothing
//         sooner.
// Owner   the caller of the work.
// Thread  the one that works.
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

  Allowance() = default;  // no end
  explicit Allowance(std::chrono::nanoseconds time, std::function<bool()> is_dropped = {})
      : until_(processor_time() + time), is_dropped_(std::move(is_dropped)) {}

  // Before so many steps more. False: stop.
  bool spend(std::size_t steps = 1) {
    if (steps < left_) {
      left_ -= steps;
      return true;
    }
    return look();
  }
  End end() const { return end_; }  // why spend() has said no, if it has
  std::chrono::nanoseconds time_left() const { return until_ - processor_time(); }
  const std::function<bool()>& is_dropped() const { return is_dropped_; }

 private:
  static constexpr std::size_t kSteps = 4096;  // from look to look

  bool look() {
    if (end_ == End::kNone && is_dropped_ && is_dropped_()) end_ = End::kDropped;
    if (end_ == End::kNone && processor_time() > until_) end_ = End::kTime;
    left_ = end_ == End::kNone ? kSteps : 0;
    return end_ == End::kNone;
  }

  std::chrono::nanoseconds until_ = std::chrono::hours(24 * 365 * 100);
  std::function<bool()> is_dropped_;
  std::size_t left_ = 0;  // steps until the next look
  End end_ = End::kNone;
};

}  // namespace quire
