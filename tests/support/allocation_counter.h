// Replaces operator new by one that counts: included by one test file of a binary, and no more.
// Thread  any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace quire::testing {

inline std::atomic<long> num_allocations{0};                       // by any thread of the test program
inline std::atomic<std::size_t> largest_allocation{0};             // in bytes, likewise
inline std::atomic<std::size_t> largest_allowed{~std::size_t{0}};  // a larger one fails, as where memory is short

inline void* counted_new(std::size_t bytes, std::size_t alignment) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  if (bytes > largest_allocation.load(std::memory_order_relaxed)) largest_allocation = bytes;
  if (bytes > largest_allowed.load(std::memory_order_relaxed)) throw std::bad_alloc();
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t) ? std::malloc(bytes) : std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace quire::testing

// Not inlined: g++ 12 would see malloc on one side of a pair and operator delete on the other, and warn.
#define NOT_INLINED [[gnu::noinline]]
NOT_INLINED void* operator new(std::size_t bytes) {
  return quire::testing::counted_new(bytes, alignof(std::max_align_t));
}
NOT_INLINED void* operator new[](std::size_t bytes) {
  return quire::testing::counted_new(bytes, alignof(std::max_align_t));
}
NOT_INLINED void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return quire::testing::counted_new(bytes, static_cast<std::size_t>(alignment));
}
NOT_INLINED void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return quire::testing::counted_new(bytes, static_cast<std::size_t>(alignment));
}
NOT_INLINED void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  quire::testing::num_allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
NOT_INLINED void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  quire::testing::num_allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
NOT_INLINED void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
NOT_INLINED void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory) noexcept { std::free(memory); }
NOT_INLINED void operator delete[](void* memory) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
NOT_INLINED void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
NOT_INLINED void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
NOT_INLINED void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
