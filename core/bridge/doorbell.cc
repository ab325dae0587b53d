#include "core/bridge/doorbell.h"

namespace quire::bridge {

void Doorbell::ring() {
  if (rung_.exchange(true, std::memory_order_seq_cst)) return;
  if (!sleeping_.load(std::memory_order_seq_cst)) return;
  const std::lock_guard lock(mutex_);  // the engine is inside its wait now and cannot miss this
  condition_.notify_one();
}

void Doorbell::wait_until(TimePoint deadline) {
  if (rung_.exchange(false, std::memory_order_seq_cst)) return;
  std::unique_lock lock(mutex_);
  sleeping_.store(true, std::memory_order_seq_cst);
  const auto rung = [this] { return rung_.load(std::memory_order_seq_cst); };
  if (deadline == TimePoint::max()) {
    condition_.wait(lock, rung);
  } else {
    condition_.wait_until(lock, deadline, rung);
  }
  sleeping_.store(false, std::memory_order_seq_cst);
  // An exchange, not a store: it synchronises with a ring() at the deadline.
  rung_.exchange(false, std::memory_order_seq_cst);
}

}  // namespace quire::bridge
