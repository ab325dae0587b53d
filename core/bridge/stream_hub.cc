#include "core/bridge/stream_hub.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/check.h"
#include "core/bridge/token_stream.h"

namespace quire::bridge {

StreamHub::StreamHub(std::uint32_t max_streams, std::function<void()> wake, Doorbell& doorbell)
    : wake_(std::move(wake)), doorbell_(doorbell), ready_((max_streams + 63) / 64), streams_(max_streams) {
  free_.reserve(max_streams);
  for (std::uint32_t slot = max_streams; slot > 0; --slot) free_.push_back(slot - 1);
}

std::shared_ptr<TokenStream> StreamHub::open(std::function<void()> on_ready, std::uint32_t num_top,
                                             std::unique_ptr<PromptScores> scores,
                                             std::unique_ptr<PromptEmbedding> embedding) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return nullptr;
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  open_.fetch_add(1, std::memory_order_relaxed);
  auto stream = std::make_shared<TokenStream>(shared_from_this(), slot, std::move(on_ready), num_top, std::move(scores),
                                              std::move(embedding));
  streams_[slot] = stream;
  return stream;
}

void StreamHub::give_back(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  streams_[slot].reset();
  free_.push_back(slot);
  open_.fetch_sub(1, std::memory_order_relaxed);
}

void StreamHub::drain() {
  pending_since_ = waking_since_.load(std::memory_order_relaxed);
  if (left_since_ != TimePoint{}) pending_since_ = std::min(pending_since_, std::exchange(left_since_, {}));
  waking_.exchange(false, std::memory_order_acq_rel);
  std::uint32_t num_called = 0;
  for (std::size_t words = ready_.size(); words > 0; --words) {
    const std::uint32_t word = next_word_;
    std::uint64_t bits = ready_[word].load(std::memory_order_relaxed);
    if (bits != 0 && num_called >= kMaxCalled) {
      left_since_ = pending_since_;
      if (!waking_.exchange(true, std::memory_order_acq_rel)) wake_();
      break;
    }
    next_word_ = (word + 1) % static_cast<std::uint32_t>(ready_.size());
    if (bits != 0) bits = ready_[word].exchange(0, std::memory_order_acquire);
    for (; bits != 0; bits &= bits - 1, ++num_called) {
      const auto slot = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      std::shared_ptr<TokenStream> stream;  // called outside the lock: on_ready may open or drop streams
      {
        const std::lock_guard lock(mutex_);
        stream = streams_[slot].lock();
      }
      if (stream) stream->on_ready_();
    }
  }
  pending_since_ = {};
}

void StreamHub::mark(std::uint32_t slot) {
  ready_[slot / 64].fetch_or(std::uint64_t{1} << (slot % 64), std::memory_order_release);
  if (!std::exchange(marked_, true)) marked_at_ = std::chrono::steady_clock::now();
}

void StreamHub::flush() {
  if (!marked_) return;
  marked_ = false;
  if (waking_.exchange(true, std::memory_order_acq_rel)) return;
  waking_since_.store(marked_at_, std::memory_order_relaxed);
  wake_();
}

}  // namespace quire::bridge
