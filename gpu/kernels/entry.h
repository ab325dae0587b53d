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

// For CUDA the address of its __global__ function, for the simulator what a thread does.
template <typename Kernel>
struct Entry {
  const void* code = nullptr;
};

}  // namespace quire::gpu
