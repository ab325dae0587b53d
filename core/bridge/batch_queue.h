// A bounded line into which many put things one by one, and out of which one thread takes them in batches.
// Shape   at most max_waiting of them wait.
// Owner   app; outlives whoever puts.
// Thread  put(): any, and never waits for the taker. take(), pause(): one taker. close(): any.
// Fails   put(): false when the line is full or closed; the value is gone.
// Source  ours. A mutex, held to move one value or to swap a batch out.
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

namespace quire::bridge {

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
    if (wakes) news_.notify_one();
    return true;
  }

  // The oldest ones, at most `most`, once so many wait, or `patience` after the first one was seen, or at the close. Empty:
  // closed, and nothing is left.
  std::vector<T> take(std::size_t most, Duration patience) {
    std::unique_lock lock(mutex_);
    wanted_ = most;
    news_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    news_.wait_for(lock, patience, [this, most] { return closed_ || waiting_.size() >= most; });
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(most, waiting_.size()));
    std::vector<T> batch(std::move_iterator(waiting_.begin()), std::move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
    return batch;
  }

  // Waits, until the close at most.
  void pause(Duration time) {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, time, [this] { return closed_; });
  }

  // Nothing more goes in. What waits can still be taken.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    news_.notify_all();
  }

 private:
  const std::size_t max_waiting_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable news_;
  std::deque<T> waiting_;
  std::size_t wanted_ = 0;  // the taker's batch
  bool closed_ = false;
};

}  // namespace quire::bridge
