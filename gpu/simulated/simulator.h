// Blocks of GPU threads on the host: each thread a fiber of its own, so that kernels run as they are written, barriers and
// shuffles included, under a debugger or a sanitizer.
//   What a copier does by itself happens at once or while a thread pauses; a block that waits for ever is found out, too.
//   A thread runs until it waits or ends; who goes on is drawn from the seed, and shared memory begins as NaN: a kernel that lacks a
//   barrier says something else with another seed. A barrier that not all threads come to is found out (CHECK), as is a
//   thread that leaves the others waiting, one that does not take its turn where the kernel may begin before it, and threads that all
//   look for what nobody writes.
//   Blocks run one after another; those of launches that run together are all there at once, as on devices that write to each other.
// Shape   threads: a multiple of 32, at most 1,024.
// Owner   a value. Stacks and shared memory are kept from launch to launch.
// Thread  one at a time; launches run to their end.
// Source  Boost.Context switches stacks; the rest is ours.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gpu/device/simulated_thread.h"

namespace quire::gpu::sim {

struct Launch {
  void (*thread)(const void* args, std::byte* shared) = nullptr;
  const void* args = nullptr;
  unsigned grid_x = 1;
  unsigned grid_y = 1;
  unsigned threads = 32;
  std::size_t shared_bytes = 0;
  // Called as a block begins, which is before the kernel's turn, with false; with true when all of its threads take it. Empty: they
  // begin in their turn. Of launches that run together none has it.
  std::function<void(bool its_turn)> turn = {};
};

class Simulator {
 public:
  explicit Simulator(std::uint64_t seed = 1);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  void run(const Launch& launch);
  // All blocks of all of them at once: threads of any two may take turns. A thread that waits for another block's word pauses.
  void run_together(std::span<const Launch> launches);

 private:
  struct Fiber;
  struct Block;
  struct Barrier {
    unsigned needed = 0;
    std::vector<unsigned> waiting;  // fibers
  };
  friend unsigned thread_of_block();
  friend unsigned block_x();
  friend unsigned block_y();
  friend void sync_block();
  friend void take_turn();
  friend bool any_of_block(bool says);
  friend void pause();
  friend const WarpWords& show(const Words& words);
  friend void looked();
  friend std::byte* shared_memory();
  friend void put_off(std::function<void()> work);

  void run_fiber();
  void seat(const Launch& launch, unsigned x, unsigned y);
  void run_seated();
  void run_until_all_wait();
  void resume(unsigned index);
  void wait_at(Barrier& barrier);
  void back_to_scheduler();
  unsigned draw(unsigned below);

  std::uint64_t state_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::size_t num_seated_ = 0;  // of blocks_
  std::vector<std::unique_ptr<Fiber>> fibers_;
  unsigned num_placed_ = 0;  // of fibers_: they have a thread to run
  std::vector<unsigned> ready_;
  std::vector<unsigned> taking_turns_;  // and not going on
  std::vector<std::function<void()>> put_off_;
  unsigned running_ = 0;  // of fibers_
  unsigned thread_ = 0;   // of its block
  Block* block_ = nullptr;
  std::uint64_t num_pauses_ = 0;     // since a thread ended, a barrier was met or put-off work was done
  boost::context::fiber scheduler_;  // where it goes on, while a fiber runs
  void* scheduler_fake_stack_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  std::size_t scheduler_stack_bytes_ = 0;
};

}  // namespace quire::gpu::sim
