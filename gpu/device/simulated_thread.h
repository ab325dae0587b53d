// What a kernel's thread asks of the simulator that runs it on the host (gpu/simulated): simt.h's words are written in these.
//   Declared here so that kernels know no simulator: a program that starts none of them on the host links none.
// Thread  of a kernel, only while it runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace quire::gpu::sim {

// What a thread shows the others of its warp, and what they all show.
using Words = std::array<std::uint32_t, 6>;
using WarpWords = std::array<Words, 32>;

// Of the thread that asks.
unsigned thread_of_block();
unsigned block_x();
unsigned block_y();
void sync_block();
void take_turn();
bool any_of_block(bool says);
// Others go on first: of a thread that looks again and again.
void pause();
// All threads of the warp have shown theirs when this returns; until they all looked() nobody shows the next.
const WarpWords& show(const Words& words);
void looked();
// Of the block.
std::byte* shared_memory();
// At some time before the block ends: now, or while a thread pauses.
void put_off(std::function<void()> work);

}  // namespace quire::gpu::sim
