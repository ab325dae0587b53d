// A kernel's code on one machine: what a device starts.
// Thread  any: no state.
#pragma once

#include <cstddef>

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

// Blocks that are to fit a multiprocessor at least: where the compiler, left alone, keeps so many that registers spill. 0: as it likes.
template <typename Kernel>
constexpr unsigned min_blocks_of() {
  if constexpr (requires { Kernel::kMinBlocks; }) {
    return Kernel::kMinBlocks;
  } else {
    return 0;
  }
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
