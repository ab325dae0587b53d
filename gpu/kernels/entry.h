// A kernel's code on one machine: what a device starts, and how it begins.
// Thread  any: no state.
#pragma once

#include <cstddef>

#include "gpu/device/simt.h"

namespace quire::gpu {

template <typename Kernel>
concept UsesShared = requires { Kernel::kSharedBytes; };

template <typename Kernel>
constexpr std::size_t shared_bytes_of() {
  if constexpr (UsesShared<Kernel>) {
    return Kernel::kSharedBytes;
  } else {
    return 0;
  }
}

// Blocks that are to fit a multiprocessor at least: where the compiler, left alone, keeps so many that registers spill, or too few. For
// architectures before sm_90 a kernel may say another number. 0: as it likes.
template <typename Kernel>
constexpr unsigned min_blocks_of() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  if constexpr (requires { Kernel::kMinBlocksBeforeSm90; }) return Kernel::kMinBlocksBeforeSm90;
#endif
  if constexpr (requires { Kernel::kMinBlocks; }) {
    return Kernel::kMinBlocks;
  } else {
    return 0;
  }
}

// Reads constants before its turn, and takes it by itself. Of the others it is the first that they do.
template <typename Kernel>
concept TakesItsTurn = requires { Kernel::kTakesItsTurn; };

// What a thread of the kernel does.
template <typename Kernel>
QUIRE_DEVICE void run_in_turn(const typename Kernel::Args& args, std::byte* shared) {
  if constexpr (!TakesItsTurn<Kernel>) take_turn();
  Kernel::run(args, shared);
}

// It waits for kernels of other devices, which have to run at the same time.
template <typename Kernel>
constexpr bool meets_peers() {
  return requires { Kernel::kMeetsPeers; };
}

// For CUDA the address of its __global__ function, for the simulator what a thread does.
template <typename Kernel>
struct Entry {
  const void* code = nullptr;
};

}  // namespace quire::gpu
