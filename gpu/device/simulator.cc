#include "gpu/device/simulator.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#else
#include <csetjmp>
#endif

namespace quire::gpu::sim {
namespace {

constexpr std::size_t kStackBytes = 128 * 1024;
constexpr unsigned kLanes = 32;
constexpr unsigned kMostThreads = 1024;
constexpr unsigned kMostTurnsWaited = 1'000'000;

thread_local Simulator* current = nullptr;  // whose kernel runs on this thread

// The address sanitizer wants to know which stack is in use.
void begin_switch([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* stack,
                  [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(fake_stack, stack, bytes);
#endif
}
void end_switch([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** from,
                [[maybe_unused]] std::size_t* bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, from, bytes);
#endif
}

}  // namespace

// Where one of them goes on: swapcontext() asks the system twice for every turn, so only what the sanitizer understands uses it.
#if defined(__SANITIZE_ADDRESS__)
struct Simulator::Place {
  ucontext_t context{};
};
void Simulator::leave(Place& from, Place& to) { swapcontext(&from.context, &to.context); }
void Simulator::begin(Place& from, const ucontext_t& first) { swapcontext(&from.context, &first); }
#else
struct Simulator::Place {
  std::jmp_buf registers{};
};
void Simulator::leave(Place& from, Place& to) {
  if (_setjmp(from.registers) == 0) _longjmp(to.registers, 1);
}
void Simulator::begin(Place& from, const ucontext_t& first) {
  if (_setjmp(from.registers) == 0) setcontext(&first);
}
#endif

// Begun once; then it waits for the next block's thread.
struct Simulator::Fiber {
  Place place{};
  bool begun = false;
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
  void* fake_stack = nullptr;
};

Simulator::Simulator(std::uint64_t seed)
    : state_(seed * 0x9e3779b97f4a7c15u + 1), scheduler_(std::make_unique<Place>()) {}
Simulator::~Simulator() = default;

void Simulator::run(const Launch& launch) {
  CHECK(current == nullptr);
  CHECK(launch.threads > 0 && launch.threads % kLanes == 0 && launch.threads <= kMostThreads);
  launch_ = launch;
  make_fibers(launch.threads);
  shared_.resize(std::max(shared_.size(), launch.shared_bytes));
  current = this;
  for (block_y_ = 0; block_y_ < launch.grid_y; ++block_y_) {
    for (block_x_ = 0; block_x_ < launch.grid_x; ++block_x_) run_block();
  }
  current = nullptr;
}

void Simulator::make_fibers(unsigned count) {
  while (fibers_.size() < count) fibers_.push_back(std::make_unique<Fiber>());
  const unsigned warps = count / kLanes;
  if (warps_.size() < warps) warps_.resize(warps);
  if (shown_.size() < warps) shown_.resize(warps);
}

void Simulator::run_block() {
  block_ = {launch_.threads, {}};
  for (Barrier& warp : warps_) warp = {kLanes, {}};
  std::ranges::fill(shared_, std::byte{0xff});
  num_ended_ = 0;
  num_saying_ = 0;
  num_turns_waited_ = 0;
  ready_.clear();
  for (unsigned thread = 0; thread < launch_.threads; ++thread) {
    ready_.push_back(thread);
  }
  if (launch_.turn) {
    launch_.turn(false);
    run_until_all_wait();
    CHECK_EQ(taking_turns_.size(), launch_.threads);  // else some went on, or wait, before the kernel's turn
    launch_.turn(true);
    ready_.swap(taking_turns_);
  }
  run_until_all_wait();
  CHECK_EQ(num_ended_, launch_.threads);  // else some wait for others that ended, or at another barrier
  CHECK_EQ(put_off_.size(), 0u);          // else nobody waited for a copy
}

void Simulator::run_until_all_wait() {
  while (!ready_.empty()) {
    const unsigned at = draw(static_cast<unsigned>(ready_.size()));
    const unsigned thread = ready_[at];
    ready_[at] = ready_.back();
    ready_.pop_back();
    resume(thread);
  }
}

void Simulator::enter() {
  Simulator& self = *current;
  end_switch(nullptr, &self.scheduler_stack_, &self.scheduler_stack_bytes_);
  for (;;) {
    self.launch_.thread(self.launch_.args, self.shared_.data());
    ++self.num_ended_;
    self.back_to_scheduler();
  }
}

void Simulator::resume(unsigned thread) {
  running_ = thread;
  Fiber& fiber = *fibers_[thread];
  begin_switch(&scheduler_fake_stack_, fiber.stack.get(), kStackBytes);
  if (fiber.begun) {
    leave(*scheduler_, fiber.place);
  } else {
    fiber.begun = true;
    ucontext_t first{};
    CHECK_EQ(getcontext(&first), 0);
    first.uc_stack.ss_sp = fiber.stack.get();
    first.uc_stack.ss_size = kStackBytes;
    first.uc_link = nullptr;
    makecontext(&first, &Simulator::enter, 0);
    begin(*scheduler_, first);
  }
  end_switch(scheduler_fake_stack_, nullptr, nullptr);
}

void Simulator::back_to_scheduler() {
  Fiber& fiber = *fibers_[running_];
  begin_switch(&fiber.fake_stack, scheduler_stack_, scheduler_stack_bytes_);
  leave(fiber.place, *scheduler_);
  end_switch(fiber.fake_stack, &scheduler_stack_, &scheduler_stack_bytes_);
}

// Whoever comes last lets all go on, and may be the first or the last to do so.
void Simulator::wait_at(Barrier& barrier) {
  num_turns_waited_ = 0;
  barrier.waiting.push_back(running_);
  if (barrier.waiting.size() == barrier.needed) {
    ready_.insert(ready_.end(), barrier.waiting.begin(), barrier.waiting.end());
    barrier.waiting.clear();
  }
  back_to_scheduler();
}

unsigned Simulator::draw(unsigned below) {
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;
  return static_cast<unsigned>((state_ >> 33) % below);
}

unsigned thread_of_block() { return current->running_; }
unsigned block_x() { return current->block_x_; }
unsigned block_y() { return current->block_y_; }
void sync_block() { current->wait_at(current->block_); }

void take_turn() {
  if (!current->launch_.turn) return;
  current->taking_turns_.push_back(current->running_);
  current->back_to_scheduler();
}

bool any_of_block(bool says) {
  if (says) ++current->num_saying_;
  sync_block();
  const bool any = current->num_saying_ > 0;
  sync_block();  // all have looked
  if (says) --current->num_saying_;
  return any;
}

const WarpWords& show(const Words& words) {
  Simulator& self = *current;
  WarpWords& shown = self.shown_[self.running_ / kLanes];
  shown[self.running_ % kLanes] = words;
  self.wait_at(self.warps_[self.running_ / kLanes]);
  return shown;
}
void looked() { current->wait_at(current->warps_[current->running_ / kLanes]); }

std::byte* shared_memory() { return current->shared_.data(); }

void put_off(std::function<void()> work) {
  if (current->draw(4) == 0) return work();
  current->put_off_.push_back(std::move(work));
}

void wait_a_turn() {
  Simulator& self = *current;
  if (!self.put_off_.empty()) {
    const unsigned at = self.draw(static_cast<unsigned>(self.put_off_.size()));
    std::swap(self.put_off_[at], self.put_off_.back());
    const std::function<void()> work = std::move(self.put_off_.back());
    self.put_off_.pop_back();
    work();
    self.num_turns_waited_ = 0;
  }
  CHECK_LT(++self.num_turns_waited_, kMostTurnsWaited);  // else all wait for what nobody does
  self.ready_.push_back(self.running_);
  self.back_to_scheduler();
}

}  // namespace quire::gpu::sim
