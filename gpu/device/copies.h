// Asynchronous copies (cp.async) from global to shared memory: the thread goes on meanwhile.
//   On the host they happen when they are waited for, as late as a device may do them.
// Shape   16 or 8 bytes per copy, aligned to its size.
// Owner   one value per thread.
// Thread  a thread waits for its own copies; a barrier must follow before it reads those of other threads.
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
  QUIRE_DEVICE void add(Words4* shared, const Words4* memory) {
    const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(memory) : "memory");
  }
  QUIRE_DEVICE void add(Words2* shared, const Words2* memory) {
    const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(memory) : "memory");
  }
  QUIRE_DEVICE void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  // Waits until at most the newest kLeft groups are in flight.
  template <unsigned kLeft>
  QUIRE_DEVICE void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
  }
#else
  template <typename Words>
  void add(Words* shared, const Words* memory) {
    open_.push_back({shared, memory, sizeof(Words)});
  }
  void end_group() { groups_.push_back(std::exchange(open_, {})); }
  template <unsigned kLeft>
  void wait() {
    for (; groups_.size() > kLeft; groups_.pop_front()) {
      for (const Copy& copy : groups_.front()) std::memcpy(copy.to, copy.from, copy.bytes);
    }
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  using Group = std::vector<Copy>;
  Group open_;
  std::deque<Group> groups_;
#endif
};

}  // namespace quire::gpu
