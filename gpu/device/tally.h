// Counts, sums and maxima of integers over a warp or a block. Their order does not matter.
// Shape   slots: a word of shared memory per warp of the block.
// Thread  add_to() and look_at(): any threads at a time. The others are called by all threads of the warp, or of the
//         block.
// Source  ours.
#pragma once

#include "gpu/device/simt.h"

namespace quire::gpu {

#if defined(__CUDACC__)

// Returns the value before the addition.
QUIRE_DEVICE std::uint32_t add_to(std::uint32_t* count, std::uint32_t x) { return atomicAdd(count, x); }
// The value now, or a moment ago.
QUIRE_DEVICE std::uint32_t look_at(const std::uint32_t* count) {
  return *static_cast<const volatile std::uint32_t*>(count);
}

QUIRE_DEVICE std::uint64_t sum_of_lanes_before(std::uint64_t x) {
  std::uint64_t sum = x;
  for (unsigned distance = 1; distance < kWarp; distance *= 2) {
    const std::uint64_t before = __shfl_up_sync(~0u, static_cast<unsigned long long>(sum), distance);
    if (thread() % kWarp >= distance) sum += before;
  }
  return sum - x;
}
QUIRE_DEVICE std::uint64_t sum_of_warp(std::uint64_t x) {
  for (unsigned mask = kWarp / 2; mask > 0; mask /= 2) {
    x += __shfl_xor_sync(~0u, static_cast<unsigned long long>(x), mask);
  }
  return x;
}
QUIRE_DEVICE std::uint64_t most_of_warp(std::uint64_t x) {
  for (unsigned mask = kWarp / 2; mask > 0; mask /= 2) {
    const std::uint64_t other = __shfl_xor_sync(~0u, static_cast<unsigned long long>(x), mask);
    x = x > other ? x : other;
  }
  return x;
}

#else

inline std::uint32_t add_to(std::uint32_t* count, std::uint32_t x) {
  const std::uint32_t before = *count;
  *count += x;
  return before;
}
inline std::uint32_t look_at(const std::uint32_t* count) { return *count; }

// fold(so far, what lane l shows, l) over the lanes of the warp.
template <typename Fold>
inline std::uint64_t folded(std::uint64_t x, const Fold& fold) {
  const sim::WarpWords& shown = sim::show({static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(x >> 32)});
  std::uint64_t all = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane)
    all = fold(all, shown[lane][0] | std::uint64_t{shown[lane][1]} << 32, lane);
  sim::looked();
  return all;
}
inline std::uint64_t sum_of_lanes_before(std::uint64_t x) {
  const unsigned self = thread() % kWarp;
  return folded(x, [self](std::uint64_t sum, std::uint64_t y, unsigned lane) { return lane < self ? sum + y : sum; });
}
inline std::uint64_t sum_of_warp(std::uint64_t x) {
  return folded(x, [](std::uint64_t sum, std::uint64_t y, unsigned) { return sum + y; });
}
inline std::uint64_t most_of_warp(std::uint64_t x) {
  return folded(x, [](std::uint64_t most, std::uint64_t y, unsigned) { return most > y ? most : y; });
}

#endif

template <unsigned kThreads>
QUIRE_DEVICE std::uint64_t sum_of_block(std::uint64_t x, std::uint64_t* slots) {
  const std::uint64_t of_warp = sum_of_warp(x);
  if (thread() % kWarp == 0) slots[thread() / kWarp] = of_warp;
  sync_block();
  std::uint64_t sum = 0;
  for (unsigned warp = 0; warp < kThreads / kWarp; ++warp) sum += slots[warp];
  sync_block();
  return sum;
}

template <unsigned kThreads>
QUIRE_DEVICE std::uint64_t most_of_block(std::uint64_t x, std::uint64_t* slots) {
  const std::uint64_t of_warp = most_of_warp(x);
  if (thread() % kWarp == 0) slots[thread() / kWarp] = of_warp;
  sync_block();
  std::uint64_t most = slots[0];
  for (unsigned warp = 1; warp < kThreads / kWarp; ++warp) most = most > slots[warp] ? most : slots[warp];
  sync_block();
  return most;
}

}  // namespace quire::gpu
