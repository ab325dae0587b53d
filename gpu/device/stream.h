// Memory accesses beyond a plain load: data that is read once, data that another block wrote, and finding out which of
// several blocks comes last.
// Shape   pointers are aligned to what they point to.
// Thread  last_to_arrive() is called by all threads of the block.
// Source  PTX ISA, ld and membar; the counter: threadFenceReduction of the CUDA samples.
#pragma once

#include "gpu/device/simt.h"

namespace quire::gpu {

struct alignas(16) Words4 {
  std::uint32_t words[4] = {};
};
struct alignas(8) Words2 {
  std::uint32_t words[2] = {};
};

// Loads constants that are read once: they leave L1 to data that is read again. Loads stay in program order (asm
// volatile), so that those of the next step are in flight while this one is multiplied; as ld.global.nc the compiler
// moved the first of them behind wait_for_previous_kernel().
QUIRE_DEVICE Words4 load_once(const Words4* at) {
#if defined(__CUDACC__)
  Words4 out;
  asm volatile("ld.global.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(out.words[0]), "=r"(out.words[1]), "=r"(out.words[2]), "=r"(out.words[3])
               : "l"(at));
  return out;
#else
  return *at;
#endif
}
QUIRE_DEVICE Words2 load_once(const Words2* at) {
#if defined(__CUDACC__)
  Words2 out;
  asm volatile("ld.global.L1::no_allocate.L2::256B.v2.u32 {%0, %1}, [%2];"
               : "=r"(out.words[0]), "=r"(out.words[1])
               : "l"(at));
  return out;
#else
  return *at;
#endif
}

QUIRE_DEVICE std::uint32_t load_once(const std::uint32_t* at) {
#if defined(__CUDACC__)
  std::uint32_t out;
  asm volatile("ld.global.L1::no_allocate.L2::256B.u32 %0, [%1];" : "=r"(out) : "l"(at));
  return out;
#else
  return *at;
#endif
}

// Loads what another block of the same kernel wrote: not from L1, which does not see such writes.
QUIRE_DEVICE float load_fresh(const float* at) {
#if defined(__CUDACC__)
  return __ldcg(at);
#else
  return *at;
#endif
}

// True if this block is the last of `count` to come here. It can then read all that the others wrote before
// (load_fresh), and the counter is 0 again, as before the first.
QUIRE_DEVICE bool last_to_arrive(std::uint32_t* counter, std::uint32_t count) {
#if defined(__CUDACC__)
  __threadfence();
#endif
  sync_block();
  bool is_last = false;
  if (thread() == 0) {
#if defined(__CUDACC__)
    is_last = atomicAdd(counter, 1u) == count - 1;
#else
    is_last = (*counter)++ == count - 1;
#endif
    if (is_last) *counter = 0;
  }
  is_last = any_of_block(is_last);
#if defined(__CUDACC__)
  __threadfence();
#endif
  return is_last;
}

}  // namespace quire::gpu
