#include "gpu/simulated/simulator.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/base/check.h"

#ifdef QUIRE_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

namespace quire::gpu::sim {
namespace {

constexpr std::size_t kStackBytes = 128 * 1024;
constexpr unsigned kLanes = 32;
constexpr unsigned kMostThreads = 1024;
// Pauses in vain before a hang is reported, and as many more for each fiber.
constexpr std::uint64_t kMostPauses = 100'000;
constexpr std::uint64_t kPausesOfFiber = 1'000;

thread_local Simulator* current = nullptr;  // the simulator whose kernel runs on this thread

// The address sanitizer must know which stack is in use.
void begin_switch([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* stack,
                  [[maybe_unused]] std::size_t bytes) {
#ifdef QUIRE_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(fake_stack, stack, bytes);
#endif
}
void end_switch([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** from,
                [[maybe_unused]] std::size_t* bytes) {
#ifdef QUIRE_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake_stack, from, bytes);
#endif
}

// Stack allocator for memory that the fiber already owns.
struct StackOfFiber {
  boost::context::stack_context allocate() { return {}; }
  void deallocate(boost::context::stack_context&) {}
};

}  // namespace

// Started once; afterwards it waits for a thread of the next block.
struct Simulator::Fiber {
  boost::context::fiber place;  // its continuation
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
  void* fake_stack = nullptr;
  Block* block = nullptr;  // null: the fiber ends
  unsigned thread = 0;
};

struct Simulator::Block {
  Launch launch;
  unsigned x = 0;
  unsigned y = 0;
  unsigned num_ended = 0;
  unsigned num_saying = 0;  // since the last any_of_block()
  Barrier all;
  std::vector<Barrier> warps;
  std::vector<WarpWords> shown;  // by warp
  std::vector<std::byte> shared;
};

Simulator::Simulator(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
Simulator::~Simulator() {
  for (unsigned i = 0; i < fibers_.size(); ++i) {
    fibers_[i]->block = nullptr;
    resume(i);
  }
}

void Simulator::run(const Launch& launch) {
  for (unsigned y = 0; y < launch.grid_y; ++y) {
    for (unsigned x = 0; x < launch.grid_x; ++x) {
      seat(launch, x, y);
      run_seated();
    }
  }
}

void Simulator::run_together(std::span<const Launch> launches) {
  for (const Launch& launch : launches) {
    for (unsigned y = 0; y < launch.grid_y; ++y) {
      for (unsigned x = 0; x < launch.grid_x; ++x) seat(launch, x, y);
    }
  }
  run_seated();
}

// Sets up a block, with a fiber for each of its threads.
void Simulator::seat(const Launch& launch, unsigned x, unsigned y) {
  CHECK(launch.threads > 0 && launch.threads % kLanes == 0 && launch.threads <= kMostThreads);
  if (num_seated_ == blocks_.size()) blocks_.push_back(std::make_unique<Block>());
  Block& block = *blocks_[num_seated_++];
  block.launch = launch;
  block.x = x;
  block.y = y;
  block.num_ended = 0;
  block.num_saying = 0;
  block.all = {launch.threads, {}};
  block.warps.resize(std::max<std::size_t>(block.warps.size(), launch.threads / kLanes));
  block.shown.resize(block.warps.size());
  for (Barrier& warp : block.warps) warp = {kLanes, {}};
  block.shared.resize(std::max(block.shared.size(), launch.shared_bytes));
  std::ranges::fill(block.shared, std::byte{0xff});
  for (unsigned thread = 0; thread < launch.threads; ++thread) {
    if (num_placed_ == fibers_.size()) fibers_.push_back(std::make_unique<Fiber>());
    fibers_[num_placed_]->block = &block;
    fibers_[num_placed_]->thread = thread;
    ready_.push_back(num_placed_++);
  }
}

void Simulator::run_seated() {
  CHECK(current == nullptr);
  current = this;
  num_pauses_ = 0;
  const bool early = num_seated_ == 1 && static_cast<bool>(blocks_.front()->launch.on_dependent_wait);
  if (early) {
    const Launch& launch = blocks_.front()->launch;
    launch.on_dependent_wait(false);
    run_until_all_wait();
    CHECK_EQ(dependent_.size(), launch.threads);  // else some thread skipped the wait, or waits elsewhere
    launch.on_dependent_wait(true);
    ready_.swap(dependent_);
  }
  run_until_all_wait();
  current = nullptr;
  for (std::size_t i = 0; i < num_seated_; ++i) {
    const Block& block = *blocks_[i];
    CHECK_EQ(block.num_ended, block.launch.threads);  // else some wait for threads that ended, or at another barrier
  }
  CHECK_EQ(put_off_.size(), 0u);  // else nothing waited for a copy
  num_seated_ = 0;
  num_placed_ = 0;
}

void Simulator::run_until_all_wait() {
  while (!ready_.empty()) {
    const unsigned at = draw(static_cast<unsigned>(ready_.size()));
    const unsigned fiber = ready_[at];
    ready_[at] = ready_.back();
    ready_.pop_back();
    resume(fiber);
  }
}

void Simulator::run_fiber() {
  end_switch(nullptr, &scheduler_stack_, &scheduler_stack_bytes_);
  while (block_ != nullptr) {
    Block& block = *block_;
    block.launch.thread(block.launch.args, block.shared.data());
    ++block.num_ended;
    num_pauses_ = 0;
    back_to_scheduler();
  }
  begin_switch(nullptr, scheduler_stack_, scheduler_stack_bytes_);  // for the last time
}

void Simulator::resume(unsigned index) {
  Fiber& fiber = *fibers_[index];
  running_ = index;
  thread_ = fiber.thread;
  block_ = fiber.block;
  if (!fiber.place) {
    if (block_ == nullptr) return;
    const boost::context::stack_context whole{kStackBytes, fiber.stack.get() + kStackBytes};
    fiber.place = boost::context::fiber(std::allocator_arg, boost::context::preallocated(whole.sp, whole.size, whole),
                                        StackOfFiber{}, [this](boost::context::fiber&& scheduler) {
                                          scheduler_ = std::move(scheduler);
                                          run_fiber();
                                          return std::move(scheduler_);
                                        });
  }
  begin_switch(&scheduler_fake_stack_, fiber.stack.get(), kStackBytes);
  fiber.place = std::move(fiber.place).resume();
  end_switch(scheduler_fake_stack_, nullptr, nullptr);
}

void Simulator::back_to_scheduler() {
  Fiber& fiber = *fibers_[running_];
  begin_switch(&fiber.fake_stack, scheduler_stack_, scheduler_stack_bytes_);
  scheduler_ = std::move(scheduler_).resume();
  end_switch(fiber.fake_stack, &scheduler_stack_, &scheduler_stack_bytes_);
}

// The last thread to come releases all; the order in which they go on is drawn.
void Simulator::wait_at(Barrier& barrier) {
  barrier.waiting.push_back(running_);
  if (barrier.waiting.size() == barrier.needed) {
    ready_.insert(ready_.end(), barrier.waiting.begin(), barrier.waiting.end());
    barrier.waiting.clear();
    num_pauses_ = 0;
  }
  back_to_scheduler();
}

unsigned Simulator::draw(unsigned below) {
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;
  return static_cast<unsigned>((state_ >> 33) % below);
}

unsigned thread_of_block() { return current->thread_; }
unsigned block_x() { return current->block_->x; }
unsigned block_y() { return current->block_->y; }
void sync_block() { current->wait_at(current->block_->all); }

void wait_for_previous_kernel() {
  if (!current->block_->launch.on_dependent_wait) return;
  current->dependent_.push_back(current->running_);
  current->back_to_scheduler();
}

bool any_of_block(bool says) {
  Simulator::Block& block = *current->block_;
  if (says) ++block.num_saying;
  sync_block();
  const bool any = block.num_saying > 0;
  sync_block();  // all threads have read `any`
  if (says) --block.num_saying;
  return any;
}

void pause() {
  Simulator& self = *current;
  if (!self.put_off_.empty()) {
    const unsigned at = self.draw(static_cast<unsigned>(self.put_off_.size()));
    std::swap(self.put_off_[at], self.put_off_.back());
    const std::function<void()> work = std::move(self.put_off_.back());
    self.put_off_.pop_back();
    work();
    self.num_pauses_ = 0;
  }
  CHECK_LE(++self.num_pauses_, kMostPauses + kPausesOfFiber * self.num_placed_);  // else all threads hang
  self.ready_.push_back(self.running_);
  self.back_to_scheduler();
}

const WarpWords& show(const Words& words) {
  Simulator& self = *current;
  Simulator::Block& block = *self.block_;
  const unsigned thread = self.thread_;
  block.shown[thread / kLanes][thread % kLanes] = words;
  self.wait_at(block.warps[thread / kLanes]);
  return block.shown[thread / kLanes];
}
void looked() { current->wait_at(current->block_->warps[current->thread_ / kLanes]); }

std::byte* shared_memory() { return current->block_->shared.data(); }

void put_off(std::function<void()> work) {
  if (current->draw(4) == 0) return work();
  current->put_off_.push_back(std::move(work));
}

}  // namespace quire::gpu::sim
