// Tokens of one sequence on their way to its client: a single-producer single-consumer ring, an end, and a cancel flag.
// Shape   a ring of 64 events, each with up to num_top candidates. The last free slot is reserved for an end without a
//         token, so that the engine can always push the end.
// Owner   shared by the api's Choice (consumer) and the engine's Live or Search (producer).
// Thread  push(), can_take*(), cancelled(): engine. pop(), satisfy(): its io thread. cancel(), timeline(): any.
// Fails   push() of a token while can_take_token() is false is our bug (CHECK).
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
  // True if the ring has room for a token and, after it, the end. If not, the engine pauses the sequence, and the next
  // pop() rings the doorbell.
  bool can_take_token() const;
  bool can_take(std::uint32_t num_tokens) const;  // the same for more tokens; false: pop() does not ring
  // Output buffer of the prompt's scores, or null. Written before the first push(), which publishes it.
  PromptScores* scores_to_write() { return scores_.get(); }
  PromptEmbedding* embedding_to_write() { return embedding_.get(); }  // likewise
  // Pushes an event with the first num_top of its candidates; none may follow one with a finish. Marks the stream in
  // its hub, whose flush() wakes the io thread.
  void push(flow::TokenEvent event, std::span<const flow::Candidate> top = {});
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // Valid if cancelled(). satisfied(): because the answer was complete.
  bool satisfied() const { return satisfied_.load(std::memory_order_relaxed); }
  std::uint64_t steps_since_cancelled() const;
  // The engine flushes each hub once after a step: one wake-up for all its streams.
  StreamHub& hub() const { return *hub_; }

  // ---- io
  std::optional<flow::TokenEvent> pop();
  // Candidates of the event popped last, valid until the next pop().
  std::span<const flow::Candidate> top() const { return std::span(tops_).subspan(place(kCapacity), num_popped_top_); }
  const PromptScores* scores() const { return scores_.get(); }           // valid after the first pop()
  const PromptEmbedding* embedding() const { return embedding_.get(); }  // likewise
  // Prompt tokens found in the prefix cache. Valid after the first pop(); of a beam search on its first stream only.
  std::uint32_t cached_tokens() const { return timeline_->cached_tokens(); }
  // The client has left, or the answer has failed: the engine ends the sequence at the start of its next iteration.
  void cancel();
  // As cancel(), but the answer is complete: a stop string matched.
  void satisfy();

  // ---- any
  // Shared: may outlive the stream.
  const std::shared_ptr<Timeline>& timeline() const { return timeline_; }

 private:
  friend class StreamHub;
  std::shared_ptr<StreamHub> hub_;
  const std::uint32_t slot_;
  std::function<void()> on_ready_;  // io thread only
  const std::shared_ptr<Timeline> timeline_ = std::make_shared<Timeline>();

  std::size_t place(std::uint32_t index) const { return std::size_t{index} * num_top_; }

  std::array<flow::TokenEvent, kCapacity> ring_;
  // [kCapacity + 1, num_top] candidates of the events in ring_, published like these; the last row is the io thread's
  // copy for the event popped last.
  const std::uint32_t num_top_;
  std::vector<flow::Candidate> tops_;
  const std::unique_ptr<PromptScores> scores_;        // null: not asked for
  const std::unique_ptr<PromptEmbedding> embedding_;  // likewise
  std::array<std::uint16_t, kCapacity> num_tops_{};   // of each event in the ring
  std::uint16_t num_popped_top_ = 0;                  // io thread only
  // Next event to pop: written by io (seq_cst, ordered with was_full_), read by the engine (acquire, or seq_cst).
  std::atomic<std::uint32_t> head_{0};
  std::atomic<std::uint32_t> tail_{0};  // next event to push: written by the engine (release), read by io (acquire)
  // Set by the engine when it finds no room, cleared by pop(), which then rings the doorbell (seq_cst).
  std::atomic<bool> was_full_{false};
  std::atomic<bool> cancelled_{false};               // written by any (release), read by the engine (acquire)
  std::atomic<bool> satisfied_{false};               // written by io before cancelled_, which publishes it
  std::atomic<std::uint64_t> cancelled_at_step_{0};  // written by any before cancelled_, which publishes it
};

}  // namespace quire::bridge
