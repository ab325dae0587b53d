// LlWords between GPUs, or between kernels that run side by side on one: 32 bits and the epoch that they belong to, in
// one word that is written and read as a whole. Who waits for a LL word looks until its epoch is there, so that nothing
// else has to say that it came.
// Shape   a LL word lies on a multiple of 8 bytes. Memory begins with epoch 0, which is nobody's.
// Thread  one writer and one reader of a LL word at a time.
// Source  the LL protocol of NCCL (Jeaugey 2019); PTX ISA, ld and st with .relaxed.sys.
#pragma once

#include "gpu/device/simt.h"

namespace quire::gpu {

struct alignas(8) LlWord {
  std::uint32_t data = 0;
  std::uint32_t epoch = 0;
};

QUIRE_DEVICE void post(LlWord* to, LlWord ll_word) {
#if defined(__CUDACC__)
  const std::uint64_t word = std::uint64_t{ll_word.epoch} << 32 | ll_word.data;
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
#else
  *to = ll_word;
#endif
}

QUIRE_DEVICE LlWord look(const LlWord* at) {
#if defined(__CUDACC__)
  std::uint64_t word;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
  return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
#else
  return *at;
#endif
}

// What the thread posted before comes before what it posts behind this.
QUIRE_DEVICE void post_in_order() {
#if defined(__CUDACC__)
  __threadfence_system();
#endif
}

// Between two looks, `looks` so far. A peer that never comes ends the kernel, and the process with it, after some ten
// seconds (predicted; half a microsecond a look): better than a server that hangs. In the simulator sim::pause() finds
// that out.
QUIRE_DEVICE void pause(unsigned looks) {
#if defined(__CUDACC__)
  if (looks == 1u << 24) __trap();
#else
  static_cast<void>(looks);
  sim::pause();
#endif
}

}  // namespace quire::gpu
