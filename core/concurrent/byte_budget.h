// A budget of bytes that are held for callers: all together at most a limit, one caller at most 3/4 of it, so that no
// caller alone can exhaust it.
// Owner   app; outlives every Share.
// Thread  any: a mutex guards it.
// Fails   take(): returns whose limit is reached; nothing changed but the count of rejections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace quire::concurrent {

class ByteBudget {
 public:
  enum class Full : std::uint8_t { kNo, kCaller, kAll };

  // The bytes that one holder has taken. Move-only; destruction or give_back() returns all of them.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(caller_, other.caller_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() { give_back(); }
    void give_back() {
      if (bytes_ > 0) budget_->leave(caller_, std::exchange(bytes_, 0));
    }
    std::size_t bytes() const { return bytes_; }

   private:
    friend class ByteBudget;
    ByteBudget* budget_ = nullptr;
    std::string caller_;
    std::size_t bytes_ = 0;
  };

  explicit ByteBudget(std::size_t limit) : limit_(limit) {}

  std::size_t limit() const { return limit_; }
  std::size_t limit_of_one() const { return limit_ - limit_ / 4; }

  // Takes `bytes` more into the share, which must be this caller's or empty.
  Full take(Share& share, std::string_view caller, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto at = held_by_.find(caller);
    const std::size_t own = at == held_by_.end() ? 0 : at->second;
    Full full = bytes > limit_ - held_ ? Full::kAll : Full::kNo;
    if (own > limit_of_one() || bytes > limit_of_one() - own) full = Full::kCaller;
    if (full != Full::kNo) {
      ++num_refused_;
      return full;
    }
    if (bytes == 0) return full;
    held_ += bytes;
    held_by_[std::string(caller)] = own + bytes;
    share.budget_ = this;
    share.caller_ = caller;
    share.bytes_ += bytes;
    return full;
  }

  std::size_t held() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  std::uint64_t num_refused() const {
    const std::lock_guard lock(mutex_);
    return num_refused_;
  }

 private:
  void leave(const std::string& caller, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    held_ -= bytes;
    const auto at = held_by_.find(caller);
    at->second -= bytes;
    if (at->second == 0) held_by_.erase(at);
  }

  const std::size_t limit_;
  mutable std::mutex mutex_;  // guards everything below
  std::size_t held_ = 0;
  std::map<std::string, std::size_t, std::less<>> held_by_;
  std::uint64_t num_refused_ = 0;
};

}  // namespace quire::concurrent
