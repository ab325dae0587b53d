// Counts holders, and can be closed: then no new one enters, and the owner can see when the last one has left.
// Thread  any.
// Fails   enter(): empty once closed.
// Source  the idea of Seastar's gate.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

namespace quire::concurrent {

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
  // kClosed | number of holders. Every access is an acq_rel read-modify-write or an acquire load.
  std::atomic<std::uint32_t> state_{0};
};

}  // namespace quire::concurrent
