// A bounded queue: many threads put values one by one, one consumer takes them in batches.
// Shape   at most max_waiting values wait.
// Owner   app; outlives all producers.
// Thread  put(): any; it never waits for the consumer. take(), pause(): the consumer. close(): any.
// Fails   put(): false if the queue is full or closed; the value is lost.
// Source  ours. The mutex is held only to move one value in or one batch out.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/clock.h"

namespace quire::concurrent {

template <typename T>
class BatchQueue {
 public:
  explicit BatchQueue(std::size_t max_waiting) : max_waiting_(max_waiting) {}

  bool put(T value) {
    bool wakes = false;
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || waiting_.size() >= max_waiting_) return false;
      waiting_.push_back(std::move(value));
      wakes = waiting_.size() == 1 || waiting_.size() == wanted_;
    }
    if (wakes) pending_.notify_one();
    return true;
  }

  // Waits for a first value; then until `most` values wait, `patience` has passed or the queue is closed. Returns the
  // oldest values, at most `most`. Empty: the queue is closed and no value is left.
  std::vector<T> take(std::size_t most, Duration patience) {
    std::unique_lock lock(mutex_);
    wanted_ = most;
    pending_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    pending_.wait_for(lock, patience, [this, most] { return closed_ || waiting_.size() >= most; });
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(most, waiting_.size()));
    std::vector<T> batch(std::move_iterator(waiting_.begin()), std::move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
    return batch;
  }

  // Waits for `time`, or until the queue is closed.
  void pause(Duration time) {
    std::unique_lock lock(mutex_);
    pending_.wait_for(lock, time, [this] { return closed_; });
  }

  // Later values are rejected; waiting ones can still be taken.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    pending_.notify_all();
  }

 private:
  const std::size_t max_waiting_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable pending_;
  std::deque<T> waiting_;
  std::size_t wanted_ = 0;  // batch size that the consumer waits for
  bool closed_ = false;
};

}  // namespace quire::concurrent
