#include "core/bridge/control_queue.h"

#include <utility>

namespace quire::bridge {

Result<Done> ControlQueue::give(ControlOrder order) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return Error{Code::kUnavailable, "the server is shutting down", "", 0};
    if (busy_)
      return Error{Code::kUnavailable, "the cache is being saved, loaded or cleared already: try again later", "", 1};
    busy_ = true;
    waiting_ = std::move(order);
  }
  doorbell_.ring();
  return Done{};
}

std::optional<ControlOrder> ControlQueue::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(waiting_, std::nullopt);
}

void ControlQueue::finish() {
  const std::lock_guard lock(mutex_);
  busy_ = false;
}

bool ControlQueue::has_order() const {
  const std::lock_guard lock(mutex_);
  return waiting_.has_value();
}

void ControlQueue::close() {
  std::optional<ControlOrder> refused;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    refused = std::exchange(waiting_, std::nullopt);
  }
  if (refused) refused->done(Error{Code::kUnavailable, "the server is shutting down", "", 0});
}

}  // namespace quire::bridge
