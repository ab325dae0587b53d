// Limits and usage of one API key: waiting sequences, sequences in all, and tokens per minute.
// Shape   a sequence counts as running from admission until its whole request has ended, and as waiting until it first
//         runs. The token bucket holds one minute's tokens and fills evenly. A request takes the tokens of its prompts
//         and of the longest answers that it allows, and returns the unused ones at its end. A request for more than
//         one minute's tokens needs a full bucket and leaves it in debt: few answers become as long as they may, and
//         the debt keeps the mean rate within the limit.
// Owner   shared by the key table, one Reservation per request and one QueueSlot per waiting sequence.
// Thread  any: a mutex guards it. Releasing a QueueSlot is one atomic decrement without the mutex, because the engine
//         thread does it.
// Fails   take(): kQueueFull naming the limit, with the seconds after which a retry may succeed, counted in
//         Figures::refused; kInvalidArgument if the request exceeds a limit by itself. Nothing else changed.
// Source  token bucket: RFC 2697, section 3, with one colour; reserving and settling are ours.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/result.h"

namespace quire::bridge {

struct AccountLimits {
  std::optional<std::uint32_t> max_running{};  // sequences under way, including waiting ones; >= 1
  std::optional<std::uint32_t> max_queued{};   // waiting sequences; >= 1
  std::optional<std::uint32_t> tokens_per_minute{};
};

class Account;

// Counts one waiting sequence in its account. Move-only; destruction or give_back() releases it.
class QueueSlot {
 public:
  QueueSlot() = default;
  QueueSlot(QueueSlot&& other) noexcept : account_(std::move(other.account_)) {}
  QueueSlot& operator=(QueueSlot&& other) noexcept;
  ~QueueSlot() { give_back(); }
  void give_back();

 private:
  friend class Account;
  explicit QueueSlot(std::shared_ptr<Account> account) : account_(std::move(account)) {}
  std::shared_ptr<Account> account_;
};

// RAII reservation of an admitted request. Move-only. If destroyed before end(), all its tokens are refunded.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept { *this = std::move(other); }
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation();

  // Settles it: refunds the tokens that were not used. Only the first call has an effect.
  void end(TimePoint now, std::uint64_t prompt_tokens, std::uint64_t completion_tokens);

 private:
  friend class Account;
  std::shared_ptr<Account> account_;  // null: ended, or empty
  std::uint32_t sequences_ = 0;
  std::uint64_t reserved_tokens_ = 0;
  TimePoint begun_;
};

class Account : public std::enable_shared_from_this<Account> {
 public:
  Account(std::string name, AccountLimits limits) : name_(std::move(name)), limits_(limits) {}

  const std::string& name() const { return name_; }
  void set_limits(AccountLimits limits);  // requests under way stay, even above the new limits

  struct Demand {
    std::uint32_t sequences = 1;  // that run at once; a beam search: its width
    std::uint32_t waiting = 1;    // entries in the admission queue; a beam search is one
    std::uint64_t tokens = 0;     // most tokens that the request may use
  };
  struct Admitted {
    Reservation reservation;
    std::vector<QueueSlot> slots;  // [Demand::waiting]
  };
  Result<Admitted> take(Demand demand, TimePoint now);

  enum Limit : std::uint8_t { kMaxRunning, kMaxQueued, kTokensPerMinute, kNumLimits };
  static const char* name_of(Limit limit);

  struct Figures {
    std::uint32_t running = 0;  // sequences, including waiting ones
    std::uint32_t waiting = 0;
    std::uint64_t requests = 0;
    std::uint64_t prompt_tokens = 0;
    std::uint64_t completion_tokens = 0;
    std::array<std::uint64_t, kNumLimits> refused{};  // requests, by limit
  };
  Figures figures() const;

 private:
  friend class Reservation;
  friend class QueueSlot;

  void fill(TimePoint now);
  std::optional<Error> refusal(Demand demand);
  Error busy(Limit limit, std::uint64_t limit_value, const std::string& found, double seconds);
  double seconds_until_ended(std::uint32_t sequences) const;
  void leave(std::uint32_t sequences, std::int64_t unused_tokens);

  const std::string name_;
  // Incremented under mutex_, decremented by any thread; relaxed: it publishes nothing.
  std::atomic<std::uint32_t> waiting_{0};
  mutable std::mutex mutex_;  // guards all members below
  AccountLimits limits_;
  std::uint32_t running_ = 0;
  double level_tokens_ = 0.0;           // of the bucket at filled_at_
  std::optional<TimePoint> filled_at_;  // none: the bucket is full
  double mean_reserved_s_ = 1.0;        // exponential mean over ended requests
  Figures figures_;                     // except running and waiting
};

}  // namespace quire::bridge
