// The way into the engine: credits for the whole request taken in one atomic, all or nothing, then a lock-free ring. A
// credit is one waiting sequence and its prompt tokens; it is held from admission until the sequence first runs or
// ends.
// Shape   at most max_sequences waiting sequences and max_tokens waiting prompt tokens; the ring is never smaller.
// Owner   app; outlives every Credit.
// Thread  admit(): any. pop(): engine. pace(): as its card says. close(), waiting_*(): any.
// Fails   admit(): kQueueFull with the seconds after which it is worth trying again; kUnavailable once closed. Nothing
//         changed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/bridge/account.h"
#include "core/bridge/doorbell.h"
#include "core/bridge/mpsc_ring.h"
#include "core/bridge/pace.h"
#include "core/bridge/token_stream.h"
#include "core/flow/request.h"

namespace quire::bridge {

class AdmissionQueue;

// One sequence's share of the waiting line. Moves; gives itself back when dropped.
class Credit {
 public:
  Credit() = default;
  Credit(Credit&& other) noexcept { *this = std::move(other); }
  Credit& operator=(Credit&& other) noexcept;
  ~Credit() { give_back(); }
  void give_back();

 private:
  friend class AdmissionQueue;
  Credit(AdmissionQueue* queue, std::uint32_t tokens, WaitingPlace place)
      : queue_(queue), tokens_(tokens), place_(std::move(place)) {}
  AdmissionQueue* queue_ = nullptr;
  std::uint32_t tokens_ = 0;
  WaitingPlace place_;
};

struct Submission {
  flow::Request request;
  std::shared_ptr<TokenStream> stream;
  Credit credit;
  std::vector<std::shared_ptr<TokenStream>>
      more_streams{};    // of a beam search: of the second best hypothesis, the third, …
  WaitingPlace place{};  // where its client's waiting sequences are counted; the credit takes it along
};

class AdmissionQueue {
 public:
  struct Limits {
    std::uint32_t max_sequences = 1024;
    std::uint32_t max_tokens = 1u << 22;
  };
  AdmissionQueue(Limits limits, Doorbell& doorbell);

  // All sequences of one HTTP request, or none of them.
  Result<Done> admit(std::vector<Submission>& submissions);
  std::optional<Submission> pop();

  // What the engine measures of itself, and Retry-After is computed from.
  Pace& pace() { return pace_; }
  const Pace& pace() const { return pace_; }

  // Draining: admit() answers kUnavailable from now on; what is inside stays and can be popped. Once closed and
  // waiting_sequences() is zero, nothing more will ever be popped.
  void close();

  std::uint32_t waiting_sequences() const;
  std::uint32_t waiting_tokens() const;
  const Limits& limits() const { return limits_; }
  int retry_after_s() const;

 private:
  friend class Credit;
  bool take(std::uint32_t sequences, std::uint64_t tokens);

  const Limits limits_;
  Doorbell& doorbell_;
  // sequences << 32 | tokens. Producers add (seq_cst CAS, ordered with closed_), whoever drops a Credit subtracts.
  std::atomic<std::uint64_t> held_{0};
  std::atomic<bool> closed_{false};  // written by close(), read by admit(): seq_cst, see admit()
  Pace pace_;
  MpscRing<Submission> ring_;  // last: what is left inside gives its credits back to held_ when it goes
};

}  // namespace quire::bridge
