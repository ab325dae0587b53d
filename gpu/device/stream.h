// Words of memory beyond a plain load: what is read once, what another block wrote, and who of several blocks comes last.
// Shape   pointers lie on a multiple of what they point to.
// Thread  last_to_arrive() is met by all threads of the block.
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

// Constants that are read once: they leave the first cache to what is read again. Loads stay where they are written, so that those of
// the next step are under way while this one is multiplied; as ld.global.nc the compiler moved the first of them behind take_turn().
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

// Written by another block of the same kernel: not from the first cache, which knows nothing of it.
QUIRE_DEVICE float load_fresh(const float* at) {
#if defined(__CUDACC__)
  return __ldcg(at);
#else
  return *at;
#endif
}

// Whether this block is the last of `count` to come here. What all of them wrote before is there for it to read (load_fresh), and
// the counter is 0 again, as it was before the first.
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
