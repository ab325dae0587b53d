// A bounded lock-free ring: many producers, one consumer, slots with sequence numbers.
// Shape   capacity is a power of two.
// Thread  try_push(): any. try_pop(): one consumer.
// Fails   try_push(): false when full, the value untouched. try_pop(): empty.
// Source  D. Vyukov, "Bounded MPMC queue" (1024cores), its one-consumer form.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace quire::bridge {

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
    // i: free for push number i. i+1: holds push number i. Written by whoever did the step (release), read by the next
    // (acquire).
    std::atomic<std::size_t> sequence{0};
    T value{};
  };

  const std::size_t mask_;
  std::unique_ptr<Slot[]> slots_;
  // Producers claim slots here. acq_rel: who sees another's claim sees the pops that claim rested on, so that "full" is
  // never an old picture. What a slot holds is published by its sequence.
  alignas(64) std::atomic<std::size_t> tail_{0};
  alignas(64) std::size_t head_ = 0;  // consumer only
};

}  // namespace quire::bridge
