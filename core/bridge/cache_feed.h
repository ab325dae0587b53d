// Queue of prefix cache changes, from the engine to the thread that publishes them as KV events.
// Shape   at most max_batches batches wait. The publisher can wait for them on a file descriptor, together with
//         sockets.
// Owner   app; outlives the engine and the publisher.
// Thread  full(), put(): engine. take(), wake_fd(), drain(): the publisher. wake(): any.
// Fails   put() on a full feed is our bug (CHECK). The constructor: StartError if the system has no descriptor left.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "core/concurrent/mpsc_ring.h"
#include "core/flow/cache_changes.h"

namespace quire::bridge {

class CacheFeed {
 public:
  using Batch = std::unique_ptr<flow::CacheChanges>;

  explicit CacheFeed(std::size_t max_batches);
  ~CacheFeed();
  CacheFeed(const CacheFeed&) = delete;
  CacheFeed& operator=(const CacheFeed&) = delete;

  // Never blocks. If full() is false, the engine's next put() succeeds.
  bool full() const { return num_waiting_.load(std::memory_order_acquire) >= max_batches_; }
  void put(Batch batch);

  Batch take();  // null: no batch waits
  // Readable if a batch was put or wake() was called since the last drain().
  int wake_fd() const { return wake_fd_; }
  void drain();
  void wake();

 private:
  const std::size_t max_batches_;
  const int wake_fd_;
  concurrent::MpscRing<Batch> ring_;
  // Incremented by the engine before it pushes, decremented by the publisher after it has popped (release), read by the
  // engine (acquire): below max_batches_ a slot of the ring is free.
  std::atomic<std::size_t> num_waiting_{0};
};

}  // namespace quire::bridge
