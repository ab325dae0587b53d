// The calls that a kernel's thread makes to the simulator (gpu/simulated) when kernels run on the host;
// simt.h is written in them.
//   They are declared apart from the simulator, so that a program which runs no kernel on the host links no simulator.
// Thread  of a kernel, only while it runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace quire::gpu::sim {

// The words that one thread shows its warp, and those of all its 32 threads.
using Words = std::array<std::uint32_t, 6>;
using WarpWords = std::array<Words, 32>;

// Indices of the calling thread, and barriers of its block.
unsigned thread_of_block();
unsigned block_x();
unsigned block_y();
void sync_block();
void wait_for_previous_kernel();
bool any_of_block(bool says);
// Lets other threads run first: for a thread that polls.
void pause();
// Returns when all threads of the warp have shown their words; the next show() waits until all have called looked().
const WarpWords& show(const Words& words);
void looked();
// Shared memory of the calling thread's block.
std::byte* shared_memory();
// Runs `work` at some time before the block ends: now, or while a thread pauses.
void put_off(std::function<void()> work);

}  // namespace quire::gpu::sim
