// Counts what is inside and can be closed: nothing new enters, and the owner learns when the last has left.
// Thread  any.
// Fails   enter(): empty once closed.
// Source  Seastar's gate, as an idea.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

namespace quire::bridge {

class Gate {
 public:
  class Holder {
   public:
    Holder(Holder&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Holder& operator=(Holder&&) = delete;
    ~Holder() {
      if (gate_ != nullptr) gate_->state_.fetch_sub(1, std::memory_order_acq_rel);
    }

   private:
    friend class Gate;
    explicit Holder(Gate* gate) : gate_(gate) {}
    Gate* gate_;
  };

  std::optional<Holder> enter() {
    if (state_.fetch_add(1, std::memory_order_acq_rel) & kClosed) {
      state_.fetch_sub(1, std::memory_order_acq_rel);
      return std::nullopt;
    }
    return Holder(this);
  }
  void close() { state_.fetch_or(kClosed, std::memory_order_acq_rel); }
  bool closed() const { return (state_.load(std::memory_order_acquire) & kClosed) != 0; }
  std::uint32_t inside() const { return state_.load(std::memory_order_acquire) & ~kClosed; }

 private:
  static constexpr std::uint32_t kClosed = 1u << 31;
  std::atomic<std::uint32_t> state_{
      0};  // closed bit | how many are inside; every access is a full read-modify-write or acquire
};

}  // namespace quire::bridge
