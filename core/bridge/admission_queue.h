// Queue of admitted sequences on their way to the engine. Credits for all sequences of a request are taken in one
// atomic operation, all or none; then its sequences go through a lock-free ring. A credit is one waiting sequence and
// its prompt tokens; it is held from admission until the sequence first runs or ends.
// Shape   at most max_sequences waiting sequences and max_tokens waiting prompt tokens; the ring has a slot for each.
// Owner   app; outlives every Credit.
// Thread  pop(): engine. load_estimate(): as its card says. All else: any.
// Fails   admit(): kQueueFull with the seconds after which a retry may succeed; kUnavailable once closed;
//         kInvalidArgument if the request exceeds a limit by itself. Nothing changed.
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
#include "core/bridge/load_estimate.h"
#include "core/bridge/token_stream.h"
#include "core/concurrent/mpsc_ring.h"
#include "core/flow/request.h"

namespace quire::bridge {

class AdmissionQueue;

// Credit of one waiting sequence. Move-only; destruction or give_back() returns it.
class Credit {
 public:
  Credit() = default;
  Credit(Credit&& other) noexcept { *this = std::move(other); }
  Credit& operator=(Credit&& other) noexcept;
  ~Credit() { give_back(); }
  void give_back();

 private:
  friend class AdmissionQueue;
  Credit(AdmissionQueue* queue, std::uint32_t tokens, QueueSlot slot)
      : queue_(queue), tokens_(tokens), slot_(std::move(slot)) {}
  AdmissionQueue* queue_ = nullptr;
  std::uint32_t tokens_ = 0;
  QueueSlot slot_;
};

struct Submission {
  flow::Request request;
  std::shared_ptr<TokenStream> stream;
  Credit credit;
  std::vector<std::shared_ptr<TokenStream>> more_streams{};  // beam search: of the 2nd, 3rd, … best hypothesis
  QueueSlot slot{};                                          // in its API key's account; admit() moves it into `credit`
};

class AdmissionQueue {
 public:
  struct Limits {
    std::uint32_t max_sequences = 1024;
    std::uint32_t max_tokens = 1u << 22;
  };
  AdmissionQueue(Limits limits, Doorbell& doorbell);

  // Admits all sequences of one HTTP request, or none.
  Result<Done> admit(std::vector<Submission>& submissions);
  std::optional<Submission> pop();

  // The engine's measurements of its speed; Retry-After is computed from them.
  LoadEstimate& load_estimate() { return load_estimate_; }
  const LoadEstimate& load_estimate() const { return load_estimate_; }

  // For draining: admit() fails with kUnavailable from now on; admitted sequences stay and can be popped. Once the
  // queue is closed and waiting_sequences() is zero, pop() returns nothing more.
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
  // sequences << 32 | tokens. admit() adds (seq_cst CAS, ordered with closed_); returning a Credit subtracts (release).
  std::atomic<std::uint64_t> held_{0};
  std::atomic<bool> closed_{false};  // written by close(), read by admit(): seq_cst, see admit()
  LoadEstimate load_estimate_;
  concurrent::MpscRing<Submission> ring_;  // last: submissions left in it return their credits to held_
};

}  // namespace quire::bridge
