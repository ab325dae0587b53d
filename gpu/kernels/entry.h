// A kernel's code on one machine: the entry that a device starts, and how a thread begins.
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

// Least number of blocks that must fit a multiprocessor (__launch_bounds__), for kernels where the compiler, left to
// itself, keeps so many that registers spill, or too few. kMinBlocksBeforeSm90: another number for architectures before
// sm_90. 0: the compiler's choice.
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

// True for a kernel that reads constants before the dependent launch wait and calls the wait itself. All others wait
// first.
template <typename Kernel>
concept WaitsForPreviousKernel = requires { Kernel::kWaitsForPreviousKernel; };

// Work of one thread of the kernel.
template <typename Kernel>
QUIRE_DEVICE void run_dependent(const typename Kernel::Args& args, std::byte* shared) {
  if constexpr (!WaitsForPreviousKernel<Kernel>) wait_for_previous_kernel();
  Kernel::run(args, shared);
}

// True for a kernel that waits for kernels of other devices, which have to run at the same time.
template <typename Kernel>
constexpr bool meets_peers() {
  return requires { Kernel::kMeetsPeers; };
}

// Entry of a kernel: for CUDA the address of its __global__ function, for the simulator the function of a thread.
template <typename Kernel>
struct Entry {
  const void* code = nullptr;
};

}  // namespace quire::gpu
