// What one client has under way, what it may have, and what it has had: sequences that wait, sequences in all, and
// tokens a minute.
// Shape   a sequence counts as running from admission until its whole request has ended, and as waiting until it first
//         runs. The bucket holds a minute's tokens and fills evenly; a request takes its prompts and the longest
//         answers that it asked for, and gives back at its end what it did not use. One that may use more than a
//         minute's tokens needs a full bucket, and leaves it in debt: few answers become as long as they may, and the
//         debt keeps the mean.
// Owner   shared: the table of keys, a Reservation for each request, a WaitingPlace for each sequence that waits.
// Thread  any: a mutex guards it, but a WaitingPlace that goes is one atomic, because the engine drops it.
// Fails   take(): kQueueFull naming the limit, with the seconds after which trying again may help; kInvalidArgument
//         where the request could never pass. Nothing changed but the count of refusals.
// Source  token bucket: RFC 2697, section 3, with one colour; reserve and settle are ours.
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
  std::optional<std::uint32_t> max_running{};  // sequences under way, those that wait included; >= 1
  std::optional<std::uint32_t> max_queued{};   // of them, those that wait; >= 1
  std::optional<std::uint32_t> tokens_per_minute{};
};

class Account;

// A sequence that has not run yet. Moves; counts no more when dropped.
class WaitingPlace {
 public:
  WaitingPlace() = default;
  WaitingPlace(WaitingPlace&& other) noexcept : account_(std::move(other.account_)) {}
  WaitingPlace& operator=(WaitingPlace&& other) noexcept;
  ~WaitingPlace() { give_back(); }
  void give_back();

 private:
  friend class Account;
  explicit WaitingPlace(std::shared_ptr<Account> account) : account_(std::move(account)) {}
  std::shared_ptr<Account> account_;
};

// A request that was let in. Moves. Dropped before it has ended it was never there: its tokens come back, all of them.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept { *this = std::move(other); }
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation();

  // Once, later calls do nothing: it has used so many tokens.
  void end(TimePoint now, std::uint64_t prompt_tokens, std::uint64_t completion_tokens);

 private:
  friend class Account;
  std::shared_ptr<Account> account_;  // null: ended, or never begun
  std::uint32_t sequences_ = 0;
  std::uint64_t reserved_tokens_ = 0;
  TimePoint begun_;
};

class Account : public std::enable_shared_from_this<Account> {
 public:
  Account(std::string name, AccountLimits limits) : name_(std::move(name)), limits_(limits) {}

  const std::string& name() const { return name_; }
  void set_limits(AccountLimits limits);  // what is under way stays, even where it is more than that

  struct Demand {
    std::uint32_t sequences = 1;  // that run at once: a search has as many as it is wide
    std::uint32_t waiting = 1;    // of them, those that wait each by itself: a search waits as one
    std::uint64_t tokens = 0;     // that it may use at most
  };
  struct Admitted {
    Reservation reservation;
    std::vector<WaitingPlace> places;  // one for each that waits
  };
  Result<Admitted> take(Demand demand, TimePoint now);

  enum Limit : std::uint8_t { kMaxRunning, kMaxQueued, kTokensPerMinute, kNumLimits };
  static const char* name_of(Limit limit);

  struct Figures {
    std::uint32_t running = 0;  // sequences
    std::uint32_t waiting = 0;  // of them
    std::uint64_t requests = 0;
    std::uint64_t prompt_tokens = 0;
    std::uint64_t completion_tokens = 0;
    std::array<std::uint64_t, kNumLimits> refused{};  // requests, by the limit that they met
  };
  Figures figures() const;

 private:
  friend class Reservation;
  friend class WaitingPlace;

  void fill(TimePoint now);
  std::optional<Error> refusal(Demand demand);
  Error busy(Limit limit, std::uint64_t limit_value, const std::string& found, double seconds);
  double seconds_until_ended(std::uint32_t sequences) const;
  void leave(std::uint32_t sequences, std::int64_t unused_tokens);

  const std::string name_;
  std::atomic<std::uint32_t> waiting_{
      0};                     // added to under mutex_, subtracted from by any: relaxed, it is a count alone
  mutable std::mutex mutex_;  // guards all below
  AccountLimits limits_;
  std::uint32_t running_ = 0;
  double level_tokens_ = 0.0;           // of the bucket, once filled_at_ says when
  std::optional<TimePoint> filled_at_;  // none: nothing was ever taken, the bucket is full
  double mean_reserved_s_ = 1.0;        // of the requests that ended, the last ones most
  Figures figures_;                     // but for running and waiting
};

}  // namespace quire::bridge
