// The engine's news of its prefix cache on their way to the thread that publishes them.
// Shape   at most max_batches batches wait; whoever waits for them can do so on a file descriptor, beside sockets.
// Owner   app; outlives the engine and the publisher.
// Thread  full(), put(): engine. take(), wake_fd(), hear(): the publisher. wake(): any.
// Fails   put() on a full feed is our bug (CHECK). The constructor: StartError where the system has no descriptor left.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "core/bridge/mpsc_ring.h"
#include "core/flow/cache_changes.h"

namespace quire::bridge {

class CacheFeed {
 public:
  using Batch = std::unique_ptr<flow::CacheChanges>;

  explicit CacheFeed(std::size_t max_batches);
  ~CacheFeed();
  CacheFeed(const CacheFeed&) = delete;
  CacheFeed& operator=(const CacheFeed&) = delete;

  // Never waits. Who is told that there is room has it until its own next put().
  bool full() const { return num_waiting_.load(std::memory_order_acquire) >= max_batches_; }
  void put(Batch batch);

  Batch take();  // null: none
  // Readable when there is something since the last hear(): batches, or a wake().
  int wake_fd() const { return wake_fd_; }
  void hear();
  void wake();

 private:
  const std::size_t max_batches_;
  const int wake_fd_;
  MpscRing<Batch> ring_;
  // Raised by the engine before it pushes, lowered by the publisher after it has popped (release), read by the engine
  // (acquire): below max_batches_ a slot of the ring is free.
  std::atomic<std::size_t> num_waiting_{0};
};

}  // namespace quire::bridge
