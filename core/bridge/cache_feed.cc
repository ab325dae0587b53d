#include "core/bridge/cache_feed.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/base/start_error.h"

namespace quire::bridge {
namespace {

int make_descriptor() {
  const int descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (descriptor < 0) throw StartError(std::string("KV events: eventfd: ") + std::strerror(errno));
  return descriptor;
}

}  // namespace

CacheFeed::CacheFeed(std::size_t max_batches)
    : max_batches_(max_batches), wake_fd_(make_descriptor()), ring_(max_batches) {}

CacheFeed::~CacheFeed() { close(wake_fd_); }

void CacheFeed::put(Batch batch) {
  num_waiting_.fetch_add(1, std::memory_order_relaxed);
  CHECK(ring_.try_push(batch));
  wake();
}

CacheFeed::Batch CacheFeed::take() {
  std::optional<Batch> batch = ring_.try_pop();
  if (!batch) return nullptr;
  num_waiting_.fetch_sub(1, std::memory_order_release);
  return std::move(*batch);
}

// A write to an eventfd fails only if its counter is at its maximum: the descriptor is readable already. A read, in
// drain(), fails only if the counter is zero: there is nothing to drain.
void CacheFeed::wake() {
  constexpr std::uint64_t kOne = 1;
  [[maybe_unused]] const auto written = write(wake_fd_, &kOne, sizeof(kOne));
}

void CacheFeed::drain() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto seen = read(wake_fd_, &count, sizeof(count));
}

}  // namespace quire::bridge
