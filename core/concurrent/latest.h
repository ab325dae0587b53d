// The latest version of an immutable value: put() replaces it, and threads that took an earlier one go on with that.
// Owner   app. A version lives until its last holder drops it.
// Thread  any: a mutex guards the pointer, and nothing else is done under it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace quire::concurrent {

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
    value_.swap(value);  // the old value is destroyed after the unlock
  }

 private:
  mutable std::mutex mutex_;  // guards value_
  std::shared_ptr<const T> value_;
};

}  // namespace quire::concurrent
