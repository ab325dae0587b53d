// What is left of the limits while a grammar is compiled.
// Thread  the one that compiles.
#pragma once

#include <chrono>
#include <string>

#include "core/base/result.h"
#include "core/grammar/grammar.h"

namespace quire::grammar {

class CompileBudget {
 public:
  explicit CompileBudget(const CompileLimits& limits)
      : limits_(limits), end_(std::chrono::steady_clock::now() + limits.max_time) {}

  bool late() const { return std::chrono::steady_clock::now() > end_; }
  std::uint32_t max_states() const { return limits_.max_states; }

  Error late_error() const {
    return invalid({}, "the grammar takes longer than " + std::to_string(limits_.max_time.count()) +
                           " ms to compile: simplify it");
  }
  Error large_error() const {
    return invalid({}, "the grammar needs more than " + std::to_string(limits_.max_states) +
                           " states: simplify it, or repeat less in it");
  }

 private:
  CompileLimits limits_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace quire::grammar
