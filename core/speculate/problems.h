// What is wrong with a drafter's files, gathered so that all of it is told at once.
// Owner   whoever reads them. The first 20 are told in full.
// Thread  one, while starting.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/start_error.h"

namespace quire::speculate {

class Problems {
 public:
  void add(std::string text) {
    if (++count_ <= kMaxTold) told_.push_back(std::move(text));
  }
  // What `read()` gives; where it refuses, its reason is kept and `otherwise` serves.
  template <typename Read, typename Value>
  Value take(Read&& read, Value otherwise) {
    try {
      return static_cast<Value>(read());
    } catch (const StartError& error) {
      add(error.what());
      return otherwise;
    }
  }
  bool any() const { return count_ > 0; }
  void throw_if_any(const std::string& what) const {
    if (count_ == 0) return;
    std::string text = what + ": " + std::to_string(count_) + (count_ == 1 ? " problem" : " problems");
    for (const std::string& problem : told_) text += "\n  " + problem;
    if (count_ > told_.size()) text += "\n  and " + std::to_string(count_ - told_.size()) + " more";
    throw StartError(text);
  }

 private:
  static constexpr std::size_t kMaxTold = 20;
  std::size_t count_ = 0;
  std::vector<std::string> told_;
};

}  // namespace quire::speculate
