#include "core/bridge/account.h"

#include <algorithm>
#include <chrono>

#include "core/base/check.h"

namespace quire::bridge {
namespace {

constexpr double kMinute_s = 60.0;
constexpr const char* kReason = "rate_limit_exceeded";

// The error of a request that exceeds a limit by itself: waiting cannot help.
Error never(const char* limit, std::uint64_t most, const std::string& asked) {
  return invalid(limit, "the request asks for " + asked + " and this key's " + limit + " is " + std::to_string(most) +
                            ": ask for less at once");
}

std::string sequences_text(std::uint32_t sequences) {
  return std::to_string(sequences) + (sequences == 1 ? " sequence" : " sequences");
}

}  // namespace

QueueSlot& QueueSlot::operator=(QueueSlot&& other) noexcept {
  if (this != &other) {
    give_back();
    account_ = std::move(other.account_);
  }
  return *this;
}

void QueueSlot::give_back() {
  if (const std::shared_ptr<Account> account = std::exchange(account_, nullptr)) {
    account->waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  std::swap(account_, other.account_);
  std::swap(sequences_, other.sequences_);
  std::swap(reserved_tokens_, other.reserved_tokens_);
  std::swap(begun_, other.begun_);
  return *this;
}

Reservation::~Reservation() {
  if (account_) account_->leave(sequences_, static_cast<std::int64_t>(reserved_tokens_));
}

void Reservation::end(TimePoint now, std::uint64_t prompt_tokens, std::uint64_t completion_tokens) {
  const std::shared_ptr<Account> account = std::exchange(account_, nullptr);
  if (!account) return;
  const std::uint64_t used = prompt_tokens + completion_tokens;
  const bool reserved = reserved_tokens_ > 0;  // false: there was no token limit at admission
  account->leave(sequences_,
                 reserved ? static_cast<std::int64_t>(reserved_tokens_) - static_cast<std::int64_t>(used) : 0);
  const std::lock_guard lock(account->mutex_);
  const double reserved_s = std::max(0.0, std::chrono::duration<double>(now - begun_).count());
  account->mean_reserved_s_ += (reserved_s - account->mean_reserved_s_) / 8.0;
  account->figures_.prompt_tokens += prompt_tokens;
  account->figures_.completion_tokens += completion_tokens;
}

const char* Account::name_of(Limit limit) {
  constexpr const char* kNames[kNumLimits] = {"max_running", "max_queued", "tokens_per_minute"};
  return kNames[limit];
}

void Account::set_limits(AccountLimits limits) {
  const std::lock_guard lock(mutex_);
  if (limits.tokens_per_minute != limits_.tokens_per_minute) filled_at_.reset();  // the new bucket is full
  limits_ = limits;
}

Result<Account::Admitted> Account::take(Demand demand, TimePoint now) {
  const std::lock_guard lock(mutex_);
  fill(now);
  if (std::optional<Error> refused = refusal(demand)) return std::move(*refused);
  running_ += demand.sequences;
  waiting_.fetch_add(demand.waiting, std::memory_order_relaxed);
  ++figures_.requests;

  Admitted admitted;
  for (std::uint32_t i = 0; i < demand.waiting; ++i) admitted.slots.push_back(QueueSlot(shared_from_this()));
  admitted.reservation.account_ = shared_from_this();
  admitted.reservation.sequences_ = demand.sequences;
  admitted.reservation.begun_ = now;
  if (limits_.tokens_per_minute) {
    admitted.reservation.reserved_tokens_ = demand.tokens;
    level_tokens_ -= static_cast<double>(demand.tokens);
  }
  return admitted;
}

Account::Figures Account::figures() const {
  const std::lock_guard lock(mutex_);
  Figures figures = figures_;
  figures.running = running_;
  figures.waiting = waiting_.load(std::memory_order_relaxed);
  return figures;
}

void Account::fill(TimePoint now) {
  if (!limits_.tokens_per_minute) return;
  const double most = *limits_.tokens_per_minute;
  const double seconds = filled_at_ ? std::max(0.0, std::chrono::duration<double>(now - *filled_at_).count()) : 0.0;
  level_tokens_ = filled_at_ ? std::min(most, level_tokens_ + seconds * most / kMinute_s) : most;
  filled_at_ = std::max(now, filled_at_.value_or(now));
}

std::optional<Error> Account::refusal(Demand demand) {
  const std::string asked = sequences_text(demand.sequences);
  if (const auto most = limits_.max_running) {
    if (demand.sequences > *most) return never("max_running", *most, asked);
    if (running_ + demand.sequences > *most) {
      return busy(kMaxRunning, *most, sequences_text(running_) + " under way",
                  seconds_until_ended(running_ + demand.sequences - *most));
    }
  }
  if (const auto most = limits_.max_queued) {
    const std::uint32_t waiting = waiting_.load(std::memory_order_relaxed);
    if (demand.waiting > *most) return never("max_queued", *most, sequences_text(demand.waiting));
    if (waiting + demand.waiting > *most) {
      return busy(kMaxQueued, *most, sequences_text(waiting) + " waiting",
                  seconds_until_ended(waiting + demand.waiting - *most));
    }
  }
  if (const auto most = limits_.tokens_per_minute) {
    const double wanted = static_cast<double>(std::min<std::uint64_t>(demand.tokens, *most));
    const double lacks = wanted - level_tokens_;
    if (lacks > 0.0) {
      const auto left = static_cast<std::int64_t>(std::max(0.0, level_tokens_));
      return busy(kTokensPerMinute, *most, std::to_string(left) + " tokens left for now", lacks * kMinute_s / *most);
    }
  }
  return std::nullopt;
}

Error Account::busy(Limit limit, std::uint64_t limit_value, const std::string& found, double seconds) {
  ++figures_.refused[limit];
  const std::string name = name_of(limit);
  return {Code::kQueueFull,
          "this key has " + found + " and its " + name + " is " + std::to_string(limit_value) + "; try again later",
          name, whole_retry_s(seconds), kReason};
}

// Expected time until `sequences` more sequences of this account have ended: of n that run, each for the mean duration,
// one ends every mean duration / n.
double Account::seconds_until_ended(std::uint32_t sequences) const {
  return mean_reserved_s_ * sequences / std::max(running_, 1u);
}

void Account::leave(std::uint32_t sequences, std::int64_t unused_tokens) {
  const std::lock_guard lock(mutex_);
  CHECK_GE(running_, sequences);
  running_ -= sequences;
  level_tokens_ += static_cast<double>(unused_tokens);  // fill() caps it at the bucket's size
}

}  // namespace quire::bridge
