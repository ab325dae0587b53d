// The limits of one compilation. Time is processor time, so a busy machine rejects the same grammars as an idle one.
// Thread  the one that compiles.
#pragma once

#include <chrono>
#include <string>

#include "core/base/processor_time.h"
#include "core/base/result.h"
#include "core/grammar/rules/compile_limits.h"

namespace quire::grammar {

class CompileBudget {
 public:
  explicit CompileBudget(const CompileLimits& limits) : limits_(limits), end_(processor_time() + limits.max_time) {}

  bool late() const { return processor_time() > end_ || (limits_.is_dropped && limits_.is_dropped()); }
  std::uint32_t max_states() const { return limits_.max_states; }

  Error late_error() const {
    return {Code::kTimeout,
            "the grammar takes longer than " + std::to_string(limits_.max_time.count()) + " ms to compile: simplify it",
            "", 0};
  }
  Error large_error() const {
    return invalid({}, "the grammar needs more than " + std::to_string(limits_.max_states) +
                           " states: simplify it, or repeat less in it");
  }

 private:
  CompileLimits limits_;
  std::chrono::nanoseconds end_;
};

}  // namespace quire::grammar
