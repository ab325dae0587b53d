// Limits the work of writing the rules of one grammar: one budget for all schemas of a request.
// Shape   a step is a property, item, value or name that is read, copied or written: about 50 ns and up to
//         64 bytes. Steps are a count, so that every machine rejects the same schemas; time is processor time.
// Thread  the one that writes.
// Fails   step() throws TooManySteps, or TooLate (also if is_dropped() returns true); json_schema() turns them into
//         kInvalidArgument and kTimeout.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "core/base/processor_time.h"

namespace quire::grammar {

struct TooManySteps {
  std::uint64_t limit = 0;
};
struct TooLate {
  std::chrono::milliseconds limit{};
};

class WriteBudget {
 public:
  static constexpr std::uint64_t kMaxSteps = 2'000'000;

  // `is_dropped` returns true once the client has left.
  explicit WriteBudget(std::uint64_t max_steps = kMaxSteps, std::chrono::milliseconds max_time = std::chrono::hours(1),
                       std::function<bool()> is_dropped = {})
      : max_steps_(max_steps),
        max_time_(max_time),
        end_(processor_time() + max_time),
        is_dropped_(std::move(is_dropped)),
        look_at_(kSteps) {}

  void step(std::uint64_t steps = 1) {
    if (steps > max_steps_ - steps_) throw TooManySteps{max_steps_};
    steps_ += steps;
    if (steps_ >= look_at_) look();
  }
  void step_over(std::string_view text) { step(1 + text.size() / 16); }  // for reading or copying it
  std::chrono::nanoseconds time_left() const { return end_ - processor_time(); }

 private:
  static constexpr std::uint64_t kSteps = 4096;  // between two looks at the clock

  void look() {
    look_at_ = steps_ + kSteps;
    if (time_left().count() < 0 || (is_dropped_ && is_dropped_())) throw TooLate{max_time_};
  }

  const std::uint64_t max_steps_;
  const std::chrono::milliseconds max_time_;
  const std::chrono::nanoseconds end_;
  const std::function<bool()> is_dropped_;
  std::uint64_t steps_ = 0;
  std::uint64_t look_at_;
};

}  // namespace quire::grammar
