// Words of NCCL's LL protocol, between GPUs or between kernels that run side by side on one: 32 bits of payload and
// their epoch in one 64-bit store. The reader spins on the epoch, so no flag or fence is needed.
// Shape   8 bytes, aligned to 8. Memory begins with epoch 0, which no collective uses.
// Thread  one writer and one reader of a word at a time.
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

// Orders the thread's earlier posts before its later ones.
QUIRE_DEVICE void post_in_order() {
#if defined(__CUDACC__)
  __threadfence_system();
#endif
}

// Wait between two polls, `looks` so far. A peer that never posts ends the kernel by a trap, and with it the process,
// after some ten seconds (predicted: half a microsecond per poll): better than a server that hangs. In the simulator
// sim::pause() detects such a wait.
QUIRE_DEVICE void pause(unsigned looks) {
#if defined(__CUDACC__)
  if (looks == 1u << 24) __trap();
#else
  static_cast<void>(looks);
  sim::pause();
#endif
}

}  // namespace quire::gpu
