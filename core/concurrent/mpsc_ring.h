// A bounded lock-free ring: many producers, one consumer, slots with sequence numbers.
// Shape   the capacity is a power of two, >= 2.
// Thread  try_push(): any. try_pop(): one consumer.
// Fails   try_push(): false if full, the value unchanged. try_pop(): empty if there is none.
// Source  D. Vyukov, "Bounded MPMC queue" (1024cores), its one-consumer form.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace quire::concurrent {

template <typename T>
class MpscRing {
 public:
  explicit MpscRing(std::size_t at_least)
      : mask_(std::bit_ceil(at_least < 2 ? 2 : at_least) - 1), slots_(new Slot[mask_ + 1]) {
    for (std::size_t i = 0; i <= mask_; ++i) slots_[i].sequence.store(i, std::memory_order_relaxed);
  }

  std::size_t capacity() const { return mask_ + 1; }

  bool try_push(T& value) {
    std::size_t at = tail_.load(std::memory_order_acquire);
    for (;;) {
      Slot& slot = slots_[at & mask_];
      const std::size_t sequence = slot.sequence.load(std::memory_order_acquire);
      if (sequence == at) {
        if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
          slot.value = std::move(value);
          slot.sequence.store(at + 1, std::memory_order_release);
          return true;
        }
      } else if (static_cast<std::ptrdiff_t>(sequence - at) < 0) {
        return false;  // the consumer has not emptied this slot yet: full
      } else {
        at = tail_.load(std::memory_order_acquire);
      }
    }
  }

  std::optional<T> try_pop() {
    Slot& slot = slots_[head_ & mask_];
    if (slot.sequence.load(std::memory_order_acquire) != head_ + 1) return std::nullopt;
    std::optional<T> value(std::move(slot.value));
    slot.value = T();
    slot.sequence.store(head_ + mask_ + 1, std::memory_order_release);
    ++head_;
    return value;
  }

 private:
  struct Slot {
    // i: free for push number i. i + 1: holds push number i. Written by the thread that has popped or pushed (release),
    // read by the next one that pushes or pops (acquire).
    std::atomic<std::size_t> sequence{0};
    T value{};
  };

  const std::size_t mask_;
  std::unique_ptr<Slot[]> slots_;
  // Next push number, which producers claim. acq_rel: a producer that sees another's claim also sees the pops that made
  // it possible, so that "full" is never based on stale data. A slot's value is published by its sequence.
  alignas(64) std::atomic<std::size_t> tail_{0};
  alignas(64) std::size_t head_ = 0;  // consumer only
};

}  // namespace quire::concurrent
