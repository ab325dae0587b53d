// The latest of some immutable values: one thread puts a new one in its place, others go on with what they have taken.
// Owner   app. A value lives until the last who took it lets go.
// Thread  any: a mutex guards the pointer, and nothing else is done under it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace quire::bridge {

template <typename T>
class Latest {
 public:
  explicit Latest(std::shared_ptr<const T> first) : value_(std::move(first)) {}

  std::shared_ptr<const T> get() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  void put(std::shared_ptr<const T> value) {
    const std::lock_guard lock(mutex_);
    value_.swap(value);  // the old one goes after the lock
  }

 private:
  mutable std::mutex mutex_;  // guards value_
  std::shared_ptr<const T> value_;
};

}  // namespace quire::bridge
