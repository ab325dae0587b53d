// Simulator of GPU thread blocks on the host: each thread is a fiber, so that kernels run as they are written, with
// barriers and shuffles, under a debugger or a sanitizer.
//   A thread runs until it waits or ends; the next one is drawn from the seed, and shared memory begins as NaN: a
//   kernel that lacks a barrier gives other results with another seed.
//   Asynchronous copies happen at once or while a thread pauses.
//   Blocks run one after another; those of launches that run together are all resident at once, as on devices that
//   write to each other's memory.
// Shape   threads: a multiple of 32, at most 1,024.
// Owner   a value. Stacks and shared memory are kept from launch to launch.
// Thread  one at a time; launches run to their end.
// Fails   CHECK: a barrier that not all threads come to; a thread that ends while others wait for it; a thread that
//         does not call the dependent launch wait of a kernel that may start early; threads that all poll for what
//         nothing writes; a copy that nothing waits for.
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
  // Called with false when a block begins, before the dependent launch wait; with true when all of its threads have
  // come to the wait. Empty: the kernel starts after the previous one. Unused by launches that run together.
  std::function<void(bool previous_done)> on_dependent_wait = {};
};

class Simulator {
 public:
  explicit Simulator(std::uint64_t seed = 1);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  void run(const Launch& launch);
  // Runs all blocks of all launches at once; threads of any two may interleave. A thread that polls for another block's
  // data pauses.
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
  friend void wait_for_previous_kernel();
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
  std::size_t num_seated_ = 0;  // blocks_ in use
  std::vector<std::unique_ptr<Fiber>> fibers_;
  unsigned num_placed_ = 0;  // fibers_ in use: each has a thread to run
  std::vector<unsigned> ready_;
  std::vector<unsigned> dependent_;  // fibers in the dependent launch wait
  std::vector<std::function<void()>> put_off_;
  unsigned running_ = 0;  // index in fibers_
  unsigned thread_ = 0;   // index in its block
  Block* block_ = nullptr;
  std::uint64_t num_pauses_ = 0;     // since a thread ended, a barrier was met or put-off work was done
  boost::context::fiber scheduler_;  // continuation of the scheduler, while a fiber runs
  void* scheduler_fake_stack_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  std::size_t scheduler_stack_bytes_ = 0;
};

}  // namespace quire::gpu::sim
