// Copies from memory to what the block shares, under way while the thread goes on.
//   On the host they happen when they are waited for and not before, as late as they may on the device.
// Shape   16 bytes each, on a multiple of 16.
// Owner   a value of each thread.
// Thread  a thread waits for its own; for the others' a barrier comes after.
// Source  PTX ISA, cp.async.
#pragma once

#include "gpu/device/stream.h"

#if !defined(__CUDACC__)
#include <cstring>
#include <deque>
#include <utility>
#include <vector>
#endif

namespace quire::gpu {

class Copies {
 public:
#if defined(__CUDACC__)
  QUIRE_DEVICE void add(void* shared, const void* memory) {
    const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(memory) : "memory");
  }
  QUIRE_DEVICE void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  // Until no more than the newest kLeft groups are under way.
  template <unsigned kLeft>
  QUIRE_DEVICE void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
  }
#else
  void add(void* shared, const void* memory) { open_.emplace_back(shared, memory); }
  void end_group() { groups_.push_back(std::exchange(open_, {})); }
  template <unsigned kLeft>
  void wait() {
    for (; groups_.size() > kLeft; groups_.pop_front()) {
      for (const auto& [to, from] : groups_.front()) std::memcpy(to, from, sizeof(Words4));
    }
  }

 private:
  using Group = std::vector<std::pair<void*, const void*> >;
  Group open_;
  std::deque<Group> groups_;
#endif
};

}  // namespace quire::gpu
