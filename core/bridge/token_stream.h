// One sequence's tokens on their way to its client: a single-producer single-consumer ring, an end, and a cancel flag.
// Shape   64 events; the last free place is kept for an end without a token, so that the engine can always say the end.
// Owner   shared by the session (consumer) and the Sequence (producer).
// Thread  push(), can_take_token(), cancelled(): engine. pop(), cancel(): its io thread.
// Fails   push() of a token when can_take_token() is false is our bug (CHECK).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/flow/token_event.h"

namespace quire::bridge {

class StreamHub;

class TokenStream {
 public:
  static constexpr std::uint32_t kCapacity = 64;

  TokenStream(std::shared_ptr<StreamHub> hub, std::uint32_t slot, std::function<void()> on_ready);
  ~TokenStream();
  TokenStream(const TokenStream&) = delete;
  TokenStream& operator=(const TokenStream&) = delete;

  // ---- engine
  // Room for a token and, behind it, for the end. A sequence without room is parked: not planned.
  bool can_take_token() const;
  // How much of the prompt came from the prefix cache; said before the first push, which publishes it.
  void set_cached_tokens(std::uint32_t tokens) { cached_tokens_.store(tokens, std::memory_order_relaxed); }
  // After an event with a finish nothing more is pushed. Marks the stream ready; the hub's flush() wakes the io thread.
  void push(flow::TokenEvent event);
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  bool satisfied() const { return satisfied_.load(std::memory_order_relaxed); }  // after cancelled()
  // After a step: one wake-up for all streams of the hub. The engine calls it once per distinct hub.
  StreamHub& hub() const { return *hub_; }

  // ---- io
  std::optional<flow::TokenEvent> pop();
  std::uint32_t cached_tokens() const {
    return cached_tokens_.load(std::memory_order_relaxed);
  }  // after the first pop()
  // The client went away, or the answer failed: the engine drops the sequence within one step.
  void cancel();
  // As cancel(), because the answer is complete: a stop string was met.
  void satisfy();

 private:
  friend class StreamHub;
  std::shared_ptr<StreamHub> hub_;
  const std::uint32_t slot_;
  std::function<void()> on_ready_;  // io thread only

  std::array<flow::TokenEvent, kCapacity> ring_;
  std::atomic<std::uint32_t> head_{0};  // next to pop: written by io (release), read by the engine (acquire)
  std::atomic<std::uint32_t> tail_{0};  // next to push: written by the engine (release), read by io (acquire)
  std::atomic<bool> was_full_{
      false};  // set by the engine when it parks (seq_cst), taken by io on pop: ring the doorbell
  std::atomic<std::uint32_t> cached_tokens_{
      0};                               // written by the engine before its first push (release there), read by io
  std::atomic<bool> cancelled_{false};  // written by io (release), read by the engine (acquire)
  std::atomic<bool> satisfied_{false};  // written by io before cancelled_, which publishes it
};

}  // namespace quire::bridge
