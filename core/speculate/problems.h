// Problems found in a drafter's files, collected so that one StartError lists them all.
// Owner   the loader that reads the files. The error lists the first 20 in full and counts the rest.
// Thread  one, at startup.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/start_error.h"

namespace quire::speculate {

class Problems {
 public:
  void add(std::string text) {
    if (++count_ <= kMaxReported) reported_.push_back(std::move(text));
  }
  // Result of `read()`; if it throws StartError, its text is added and `otherwise` is returned.
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
    for (const std::string& problem : reported_) text += "\n  " + problem;
    if (count_ > reported_.size()) text += "\n  and " + std::to_string(count_ - reported_.size()) + " more";
    throw StartError(text);
  }

 private:
  static constexpr std::size_t kMaxReported = 20;
  std::size_t count_ = 0;
  std::vector<std::string> reported_;
};

}  // namespace quire::speculate
