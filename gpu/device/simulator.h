// Blocks of GPU threads on the host: each thread a fiber of its own, so that kernels run as they are written, barriers and
// shuffles included, under a debugger or a sanitizer.
//   What a copier does by itself happens at once or while a thread waits a turn; a block that waits for ever is found out, too.
//   A thread runs until it waits or ends; who goes on is drawn from the seed, and shared memory begins as NaN: a kernel that lacks a
//   barrier says something else with another seed. A barrier that not all threads come to is found out (CHECK), as is a
//   thread that leaves the others waiting, and one that does not take its turn where the kernel may begin before it.
// Shape   threads: a multiple of 32, at most 1,024.
// Owner   a value. Stacks and shared memory are kept from block to block.
// Thread  one at a time; launches run to their end.
// Source  ours.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace quire::gpu::sim {

struct Launch {
  void (*thread)(const void* args, std::byte* shared) = nullptr;
  const void* args = nullptr;
  unsigned grid_x = 1;
  unsigned grid_y = 1;
  unsigned threads = 32;
  std::size_t shared_bytes = 0;
  // Called as a block begins, which is before the kernel's turn, with false; with true when all of its threads take it. Empty: they
  // begin in their turn.
  std::function<void(bool its_turn)> turn = {};
};

// What a thread shows the others of its warp, and what they all show.
using Words = std::array<std::uint32_t, 6>;
using WarpWords = std::array<Words, 32>;

class Simulator {
 public:
  explicit Simulator(std::uint64_t seed = 1);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  void run(const Launch& launch);

 private:
  struct Barrier {
    unsigned needed = 0;
    std::vector<unsigned> waiting;  // threads
  };
  struct Place;
  struct Fiber;
  friend unsigned thread_of_block();
  friend unsigned block_x();
  friend unsigned block_y();
  friend void sync_block();
  friend void take_turn();
  friend bool any_of_block(bool says);
  friend const WarpWords& show(const Words& words);
  friend void looked();
  friend std::byte* shared_memory();
  friend void put_off(std::function<void()> work);
  friend void wait_a_turn();

  static void enter();
  static void leave(Place& from, Place& to);
  static void begin(Place& from, const ucontext_t& first);
  void run_block();
  void make_fibers(unsigned count);
  void run_until_all_wait();
  void resume(unsigned thread);
  void wait_at(Barrier& barrier);
  void back_to_scheduler();
  unsigned draw(unsigned below);

  std::uint64_t state_;
  Launch launch_;
  unsigned block_x_ = 0;
  unsigned block_y_ = 0;
  unsigned running_ = 0;
  unsigned num_ended_ = 0;
  unsigned num_turns_waited_ = 0;  // and nothing else happened
  std::vector<std::function<void()>> put_off_;
  unsigned num_saying_ = 0;  // since the last any_of_block()
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<unsigned> ready_;
  std::vector<unsigned> taking_turns_;  // and not going on
  Barrier block_;
  std::vector<Barrier> warps_;
  std::vector<WarpWords> shown_;  // by warp
  std::vector<std::byte> shared_;
  std::unique_ptr<Place> scheduler_;
  void* scheduler_fake_stack_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  std::size_t scheduler_stack_bytes_ = 0;
};

// Of the thread that asks; only within a kernel.
unsigned thread_of_block();
unsigned block_x();
unsigned block_y();
void sync_block();
void take_turn();
bool any_of_block(bool says);
// All threads of the warp have shown theirs when this returns; until they all looked() nobody shows the next.
const WarpWords& show(const Words& words);
void looked();
// Of the block.
std::byte* shared_memory();
// At some time before the block ends: now, or while a thread waits.
void put_off(std::function<void()> work);
void wait_a_turn();

}  // namespace quire::gpu::sim
