#include "core/bridge/token_stream.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/bridge/doorbell.h"
#include "core/bridge/stream_hub.h"

namespace quire::bridge {

TokenStream::TokenStream(std::shared_ptr<StreamHub> hub, std::uint32_t slot, std::function<void()> on_ready,
                         std::uint32_t num_top, std::unique_ptr<PromptScores> scores,
                         std::unique_ptr<PromptEmbedding> embedding)
    : hub_(std::move(hub)),
      slot_(slot),
      on_ready_(std::move(on_ready)),
      num_top_(num_top),
      scores_(std::move(scores)),
      embedding_(std::move(embedding)) {
  CHECK_LE(num_top, sample::kMaxTop);
  if (num_top > 0) tops_.resize(place(kCapacity + 1));
}

TokenStream::~TokenStream() { hub_->give_back(slot_); }

bool TokenStream::can_take_token() const {
  const auto free = [this] {
    return kCapacity - (tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_seq_cst));
  };
  if (free() >= 2) return true;
  // Set the flag, then check again: either pop() sees the flag and rings the doorbell, or this thread sees that pop().
  auto& flag = const_cast<std::atomic<bool>&>(was_full_);
  flag.store(true, std::memory_order_seq_cst);
  return free() >= 2;
}

bool TokenStream::can_take(std::uint32_t num_tokens) const {
  const std::uint32_t used = tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire);
  return used + num_tokens < kCapacity;
}

void TokenStream::push(flow::TokenEvent event, std::span<const flow::Candidate> top) {
  const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
  const std::uint32_t used = tail - head_.load(std::memory_order_acquire);
  CHECK_LT(used, flow::has_token(event.finish) ? kCapacity - 1 : kCapacity);
  ring_[tail % kCapacity] = event;
  const std::size_t num_top = std::min<std::size_t>(top.size(), num_top_);
  std::copy_n(top.data(), num_top, tops_.data() + place(tail % kCapacity));
  num_tops_[tail % kCapacity] = static_cast<std::uint16_t>(num_top);
  tail_.store(tail + 1, std::memory_order_release);
  hub_->mark(slot_);
}

std::optional<flow::TokenEvent> TokenStream::pop() {
  const std::uint32_t head = head_.load(std::memory_order_relaxed);
  if (head == tail_.load(std::memory_order_acquire)) return std::nullopt;
  const flow::TokenEvent event = ring_[head % kCapacity];
  num_popped_top_ = num_tops_[head % kCapacity];
  std::copy_n(tops_.data() + place(head % kCapacity), num_popped_top_, tops_.data() + place(kCapacity));
  head_.store(head + 1, std::memory_order_seq_cst);
  if (was_full_.load(std::memory_order_seq_cst) && was_full_.exchange(false, std::memory_order_seq_cst)) {
    hub_->doorbell_.ring();
  }
  return event;
}

std::uint64_t TokenStream::steps_since_cancelled() const {
  return hub_->doorbell_.num_steps() - cancelled_at_step_.load(std::memory_order_relaxed);
}

void TokenStream::satisfy() {
  satisfied_.store(true, std::memory_order_relaxed);
  cancel();
}

void TokenStream::cancel() {
  if (!cancelled()) cancelled_at_step_.store(hub_->doorbell_.num_steps(), std::memory_order_relaxed);
  cancelled_.store(true, std::memory_order_release);
  hub_->doorbell_.ring();
}

}  // namespace quire::bridge
