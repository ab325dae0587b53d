// Memory that can be closed: an access to it then ends the process (SIGSEGV).
// Shape   one range of addresses, allocated from its beginning; freed memory is not reused.
// Owner   the simulated device.
// Thread  one.
// Source  ours; protected pages as in Electric Fence (Perens 1987).
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "core/base/check.h"

namespace quire::gpu {

class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory_ != MAP_FAILED);
  }
  ~GuardedMemory() { munmap(memory_, bytes_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // Null: not enough is left. `bytes` is a multiple of the wanted alignment.
  void* take(std::size_t bytes) {
    if (bytes > bytes_ - taken_) return nullptr;
    void* out = static_cast<std::byte*>(memory_) + taken_;
    taken_ += bytes;
    return out;
  }
  void open(bool is_open) { CHECK_EQ(mprotect(memory_, taken_, is_open ? PROT_READ | PROT_WRITE : PROT_NONE), 0); }

 private:
  const std::size_t bytes_;
  void* memory_ = nullptr;
  std::size_t taken_ = 0;
};

}  // namespace quire::gpu
