// One sequence's tokens on their way to its client: a single-producer single-consumer ring, an end, and a cancel flag.
// Shape   64 events, and where asked for num_top candidates beside each; the last free place is kept for an end without a
//         token, so that the engine can always say the end.
// Owner   shared by the session (consumer) and the Sequence (producer).
// Thread  push(), can_take_token(), cancelled(): engine. pop(), satisfy(): its io thread. cancel(), timeline(): any.
// Fails   push() of a token when can_take_token() is false is our bug (CHECK).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/bridge/prompt_embedding.h"
#include "core/bridge/prompt_scores.h"
#include "core/bridge/timeline.h"
#include "core/flow/token_event.h"

namespace quire::bridge {

class StreamHub;

class TokenStream {
 public:
  static constexpr std::uint32_t kCapacity = 64;

  TokenStream(std::shared_ptr<StreamHub> hub, std::uint32_t slot, std::function<void()> on_ready,
              std::uint32_t num_top = 0, std::unique_ptr<PromptScores> scores = nullptr,
              std::unique_ptr<PromptEmbedding> embedding = nullptr);
  ~TokenStream();
  TokenStream(const TokenStream&) = delete;
  TokenStream& operator=(const TokenStream&) = delete;

  // ---- engine
  // Room for a token and, behind it, for the end. A sequence without room is parked: not planned.
  bool can_take_token() const;
  bool can_take(std::uint32_t num_tokens) const;  // so many tokens, and the end; nobody is rung for who is told no
  // Where the prompt's scores go, or null; written before the first push, which publishes them.
  PromptScores* scores_to_write() { return scores_.get(); }
  PromptEmbedding* embedding_to_write() { return embedding_.get(); }  // likewise
  // After an event with a finish nothing more is pushed. Of the candidates the first num_top are told. Marks the stream
  // ready; the hub's flush() wakes the io thread.
  void push(flow::TokenEvent event, std::span<const flow::Candidate> top = {});
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  bool satisfied() const { return satisfied_.load(std::memory_order_relaxed); }  // after cancelled()
  std::uint64_t steps_since_cancelled() const;                                   // after cancelled()
  // After a step: one wake-up for all streams of the hub. The engine calls it once per distinct hub.
  StreamHub& hub() const { return *hub_; }

  // ---- io
  std::optional<flow::TokenEvent> pop();
  // The candidates told with the event popped last, until the next pop().
  std::span<const flow::Candidate> top() const { return std::span(tops_).subspan(place(kCapacity), num_popped_top_); }
  const PromptScores* scores() const { return scores_.get(); }           // after the first pop()
  const PromptEmbedding* embedding() const { return embedding_.get(); }  // likewise
  // How much of the prompt came from the prefix cache. After the first pop(); of a search, on its first stream.
  std::uint32_t cached_tokens() const { return timeline_->cached_tokens(); }
  // The client went away, or the answer failed: the engine drops the sequence within one step.
  void cancel();
  // As cancel(), because the answer is complete: a stop string was met.
  void satisfy();

  // ---- any
  // Outlives the stream where somebody keeps it.
  const std::shared_ptr<Timeline>& timeline() const { return timeline_; }

 private:
  friend class StreamHub;
  std::shared_ptr<StreamHub> hub_;
  const std::uint32_t slot_;
  std::function<void()> on_ready_;  // io thread only
  const std::shared_ptr<Timeline> timeline_ = std::make_shared<Timeline>();

  std::size_t place(std::uint32_t index) const { return std::size_t{index} * num_top_; }

  std::array<flow::TokenEvent, kCapacity> ring_;
  // [kCapacity + 1, num_top] handed over as ring_ is; the last line is io's copy of the event popped last.
  const std::uint32_t num_top_;
  std::vector<flow::Candidate> tops_;
  const std::unique_ptr<PromptScores> scores_;        // null: not asked for
  const std::unique_ptr<PromptEmbedding> embedding_;  // likewise
  std::array<std::uint16_t, kCapacity> num_tops_{};   // of each event in the ring
  std::uint16_t num_popped_top_ = 0;                  // io thread only
  std::atomic<std::uint32_t> head_{0};  // next to pop: written by io (release), read by the engine (acquire)
  std::atomic<std::uint32_t> tail_{0};  // next to push: written by the engine (release), read by io (acquire)
  std::atomic<bool> was_full_{
      false};  // set by the engine when it parks (seq_cst), taken by io on pop: ring the doorbell
  std::atomic<bool> cancelled_{false};               // written by any (release), read by the engine (acquire)
  std::atomic<bool> satisfied_{false};               // written by io before cancelled_, which publishes it
  std::atomic<std::uint64_t> cancelled_at_step_{0};  // written by any before cancelled_, which publishes it
};

}  // namespace quire::bridge
