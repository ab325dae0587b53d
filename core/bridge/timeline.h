// History of one sequence in the engine: times of its first run, prompt chunks, tokens, drafts, preemptions and end.
// Written as it happens, readable at any time.
// Shape   times are microseconds after the request's arrival, at most 2^32 - 2 (71 minutes). The lists keep their first
//         entries and only count later ones, so that no step allocates.
// Owner   shared by the TokenStream, the engine's Live and the api's RequestBook.
// Thread  begin(), note_*(): engine. All else: any.
// Fails   never.
// Source  ours. An entry is written before the count that publishes it and never changed, so that readers need no lock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "core/base/clock.h"
#include "core/flow/wait_cause.h"

namespace quire::bridge {

// A list that one thread appends to and any thread reads.
template <typename T, std::uint32_t capacity>
class Trail {
 public:
  static constexpr std::uint32_t kCapacity = capacity;

  void add(const T& entry) {
    const std::uint32_t n = num_.load(std::memory_order_relaxed);
    if (n < capacity) entries_[n] = entry;
    num_.store(n + 1, std::memory_order_release);
  }
  std::uint32_t num() const { return num_.load(std::memory_order_acquire); }  // including those not kept
  std::span<const T> kept() const { return {entries_.data(), std::min(num(), capacity)}; }

 private:
  std::array<T, capacity> entries_{};
  std::atomic<std::uint32_t> num_{0};  // written by the appending thread (release), read by any (acquire)
};

class Timeline {
 public:
  using Micros = std::uint32_t;

  struct Chunk {  // rows of the prompt (after a preemption: of prompt and answer) in one step
    Micros at = 0;
    Micros took = 0;  // duration of the whole step, other sequences included
    std::uint32_t rows = 0;
  };
  struct Preemption {
    Micros at = 0;
    bool swapped = false;  // its blocks were swapped to host memory; false: they are recomputed
  };
  struct Gap {                // between two tokens
    std::uint32_t token = 0;  // index of the later one
    Micros length = 0;
  };
  struct Draft {                // draft tokens that one step verified
    std::uint8_t drafted = 0;   // <= 64
    std::uint8_t accepted = 0;  // of these
  };
  enum class End : std::uint8_t { kNone, kStop, kLength, kAborted, kLate, kFailed };

  // ---- engine
  void begin(TimePoint arrival, std::uint32_t prompt_tokens) {
    arrival_ = arrival;
    prompt_tokens_.store(prompt_tokens, std::memory_order_relaxed);
  }
  // Its first run. cached_tokens: prompt tokens found in the prefix cache.
  void note_start(TimePoint now, std::uint32_t cached_tokens, flow::WaitCause waited_for = flow::WaitCause::kNone) {
    waited_for_.store(waited_for, std::memory_order_relaxed);
    cached_tokens_.store(cached_tokens, std::memory_order_relaxed);
    start_.store(since_arrival(now), std::memory_order_release);
  }
  void note_chunk(TimePoint submitted, TimePoint now, std::uint32_t rows) {
    const Micros at = since_arrival(submitted);
    chunks_.add({at, since_arrival(now) - at, rows});
  }
  void note_preemption(TimePoint now, bool swapped) { preemptions_.add({since_arrival(now), swapped}); }
  // At the commit of a step that verified a draft of this sequence with at least one node.
  void note_draft(std::uint32_t drafted, std::uint32_t accepted) {
    num_drafted_.store(num_drafted_.load(std::memory_order_relaxed) + drafted, std::memory_order_relaxed);
    num_accepted_.store(num_accepted_.load(std::memory_order_relaxed) + accepted, std::memory_order_relaxed);
    drafts_.add({static_cast<std::uint8_t>(drafted), static_cast<std::uint8_t>(accepted)});
  }
  void note_token(TimePoint now) {
    const Micros at = since_arrival(now);
    const std::uint32_t n = tokens_.num();
    if (n > 0) {
      const Micros length = at - last_token_.load(std::memory_order_relaxed);
      if (n == 1 || length > longest_gap()->length) {
        longest_gap_.store(std::uint64_t{n} << 32 | length, std::memory_order_relaxed);
      }
    }
    last_token_.store(at, std::memory_order_relaxed);
    tokens_.add(at);
  }
  void note_end(TimePoint now, End how) {
    ended_.store(since_arrival(now), std::memory_order_relaxed);
    end_.store(how, std::memory_order_release);
  }

  // ---- any
  std::uint32_t prompt_tokens() const { return prompt_tokens_.load(std::memory_order_relaxed); }  // 0: before begin()
  // Time of its first run; empty while it waits for that.
  std::optional<Micros> start() const {
    const Micros at = start_.load(std::memory_order_acquire);
    return at == kNever ? std::nullopt : std::optional(at);
  }
  // Valid once start() is set, as is waited_for().
  std::uint32_t cached_tokens() const { return cached_tokens_.load(std::memory_order_relaxed); }
  flow::WaitCause waited_for() const { return waited_for_.load(std::memory_order_relaxed); }
  const Trail<Chunk, 64>& chunks() const { return chunks_; }
  const Trail<Preemption, 16>& preemptions() const { return preemptions_; }
  const Trail<Micros, 256>& tokens() const { return tokens_; }  // time of each
  const Trail<Draft, 256>& drafts() const { return drafts_; }
  std::uint32_t num_drafted() const { return num_drafted_.load(std::memory_order_relaxed); }    // of all drafts
  std::uint32_t num_accepted() const { return num_accepted_.load(std::memory_order_relaxed); }  // of all drafts
  std::optional<Micros> last_token() const {
    return tokens_.num() == 0 ? std::nullopt : std::optional(last_token_.load(std::memory_order_relaxed));
  }
  std::optional<Gap> longest_gap() const {
    const std::uint64_t packed = longest_gap_.load(std::memory_order_relaxed);
    if (packed == 0) return std::nullopt;
    return Gap{static_cast<std::uint32_t>(packed >> 32), static_cast<Micros>(packed)};
  }
  End end() const { return end_.load(std::memory_order_acquire); }
  Micros ended() const { return ended_.load(std::memory_order_relaxed); }  // valid once end() is not kNone

 private:
  static constexpr Micros kNever = ~0u;

  Micros since_arrival(TimePoint now) const {
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now - arrival_).count();
    return static_cast<Micros>(std::clamp<std::int64_t>(micros, 0, kNever - 1));
  }

  // All atomics are written by the engine and read by any thread. Relaxed ones are published by a later release store,
  // or are valid without one.
  TimePoint arrival_{};  // engine only
  std::atomic<std::uint32_t> prompt_tokens_{0};
  std::atomic<std::uint32_t> cached_tokens_{0};                      // published by start_
  std::atomic<flow::WaitCause> waited_for_{flow::WaitCause::kNone};  // published by start_
  std::atomic<Micros> start_{kNever};
  Trail<Chunk, 64> chunks_;
  Trail<Preemption, 16> preemptions_;
  Trail<Micros, 256> tokens_;
  Trail<Draft, 256> drafts_;
  std::atomic<std::uint32_t> num_drafted_{0};   // published by the count of drafts_
  std::atomic<std::uint32_t> num_accepted_{0};  // published by the count of drafts_
  std::atomic<Micros> last_token_{0};           // published by the count of tokens_
  std::atomic<std::uint64_t> longest_gap_{0};   // token << 32 | length; 0: none
  std::atomic<Micros> ended_{0};                // published by end_
  std::atomic<End> end_{End::kNone};
};

}  // namespace quire::bridge
