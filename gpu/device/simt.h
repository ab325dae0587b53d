// Vocabulary of the kernels: threads of a block, barriers, shuffles, the programmatic dependent launch wait, and
// arithmetic with fixed rounding.
// One source for two machines: nvcc compiles it to device code, any C++ compiler to simulator threads
// (simulated_thread.h).
//
// A kernel is a struct: Args, a plain value; kThreads of a block, a multiple of 32; run(args, shared), the work of one
// thread.
// Shape   grids have x and y; block().x < grid.x. A block's shared memory begins as garbage.
// Order   every operation is one IEEE operation: device code is compiled without contraction (-fmad=false); fma() is
//         explicit.
// Launch  programmatic dependent launch: a device may start a kernel while the one before it still runs.
//         wait_for_previous_kernel() waits until all kernels before it have ended and their writes are visible; only
//         then may the next one start, so that at most two overlap. Before this wait a kernel reads constants only
//         (gpu/runtime/device.h) and writes nothing.
// Thread  barriers and shuffles are called by all threads of the block, or of the warp; wait_for_previous_kernel() by
//         every thread of the block, once.
// Source  ours; programmatic dependent launch: CUDA C++ Programming Guide; PTX ISA, griddepcontrol.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define QUIRE_DEVICE __device__ __forceinline__
#define QUIRE_ROLLED _Pragma("unroll 1")  // before a loop that would spill if it were unrolled
#define QUIRE_UNROLLED _Pragma("unroll")  // before a loop whose arrays are registers
#else
#include <cmath>

#include "gpu/device/simulated_thread.h"
#define QUIRE_DEVICE inline
#define QUIRE_ROLLED
#define QUIRE_UNROLLED
#endif

namespace quire::gpu {

inline constexpr unsigned kWarp = 32;

struct Index {
  unsigned x = 0;
  unsigned y = 0;
};

#if defined(__CUDACC__)

QUIRE_DEVICE unsigned thread() { return threadIdx.x; }
QUIRE_DEVICE Index block() { return {blockIdx.x, blockIdx.y}; }
QUIRE_DEVICE void sync_block() { __syncthreads(); }
QUIRE_DEVICE void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900  // older devices start a kernel after the previous one
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// True if any thread says so. Also a barrier.
QUIRE_DEVICE bool any_of_block(bool says) { return __syncthreads_or(says) != 0; }
// Barrier of a warp: all lanes see what the others wrote before.
QUIRE_DEVICE void sync_warp() { __syncwarp(); }
// The value of the lane whose index differs in the bits of `mask`.
QUIRE_DEVICE float shuffle_xor(float value, unsigned mask) { return __shfl_xor_sync(~0u, value, mask); }
// The value of lane `from`.
QUIRE_DEVICE std::uint32_t shuffle(std::uint32_t value, unsigned from) { return __shfl_sync(~0u, value, from); }
QUIRE_DEVICE float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
QUIRE_DEVICE float root(float x) { return __fsqrt_rn(x); }
QUIRE_DEVICE float quotient(float a, float b) { return __fdiv_rn(a, b); }
QUIRE_DEVICE std::uint32_t bits_of(float x) { return __float_as_uint(x); }
QUIRE_DEVICE float f32_of_bits(std::uint32_t bits) { return __uint_as_float(bits); }
// Atomic.
QUIRE_DEVICE void add_whole(std::uint64_t* sum, std::uint64_t x) {
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(x));
}

#else

inline unsigned thread() { return sim::thread_of_block(); }
inline Index block() { return {sim::block_x(), sim::block_y()}; }
inline void sync_block() { sim::sync_block(); }
inline void wait_for_previous_kernel() { sim::wait_for_previous_kernel(); }
inline bool any_of_block(bool says) { return sim::any_of_block(says); }
inline void sync_warp() {
  sim::show({});
  sim::looked();
}
inline float shuffle_xor(float value, unsigned mask) {
  const sim::WarpWords& shown = sim::show({__builtin_bit_cast(std::uint32_t, value)});
  const float other = __builtin_bit_cast(float, shown[thread() % kWarp ^ mask][0]);
  sim::looked();
  return other;
}
inline std::uint32_t shuffle(std::uint32_t value, unsigned from) {
  const std::uint32_t other = sim::show({value})[from][0];
  sim::looked();
  return other;
}
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float root(float x) { return std::sqrt(x); }
inline float quotient(float a, float b) { return a / b; }
inline std::uint32_t bits_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
inline float f32_of_bits(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline void add_whole(std::uint64_t* sum, std::uint64_t x) { *sum += x; }

#endif

}  // namespace quire::gpu
