#include "gpu/runtime/simulated_device.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/start_error.h"
#include "gpu/simulated/guarded_memory.h"
#include "gpu/simulated/simulated_kernels.h"
#include "gpu/simulated/simulator.h"

namespace quire::gpu {
namespace {

constexpr std::size_t kBoundary = 256;
constexpr std::uint64_t kBytes = std::uint64_t{8} << 30;  // size of the simulated memory

struct Work {
  std::function<void()> run;
  // Instead of `run`: what all ranks wait for each other at, a kernel of each, or one call for all of them.
  std::vector<std::byte> args{};
  Launch launch{};
  std::shared_ptr<const std::function<void()>> common{};
};

sim::Launch in_simulator(const Launch& launch, const std::byte* args) {
  return {.thread = reinterpret_cast<void (*)(const void*, std::byte*)>(const_cast<void*>(launch.code)),
          .args = args,
          .grid_x = launch.grid.x,
          .grid_y = launch.grid.y,
          .threads = launch.threads,
          .shared_bytes = launch.shared_bytes};
}

struct SimulatedStep final : CapturedStep {
  std::vector<Work> works;
};

class SimulatedRanks;

class SimulatedDevice final : public Device {
 public:
  SimulatedDevice(std::uint64_t seed, Pace pace, SimulatedRanks* ranks = nullptr)
      : simulator_(seed), pace_(pace), ranks_(ranks) {
    if (pace == Pace::kEarly) guarded_ = std::make_unique<GuardedMemory>(kBytes);
  }

  std::string name() const override { return "simulated"; }
  std::string architecture() const override { return "host"; }
  const KernelTable& kernels() const override { return simulated_kernels(); }

  void* allocate(std::size_t bytes, const char* what) override { return take(bytes, what, guarded_.get()); }
  void* allocate_constant(std::size_t bytes, const char* what) override { return take(bytes, what, nullptr); }
  std::uint64_t free_bytes() override { return kBytes - std::min(kBytes, taken_); }
  void free(void* memory) noexcept override {
    catch_up();
    const auto at = sizes_.find(memory);
    taken_ -= at->second.bytes;
    if (!at->second.is_guarded) std::free(memory);
    sizes_.erase(at);
  }
  void* allocate_pinned(std::size_t bytes, const char* what) override { return take(bytes, what, guarded_.get()); }
  void free_pinned(void* memory) noexcept override { free(memory); }

  void upload(void* to, const void* from, std::size_t bytes) override {
    CHECK(!captures_);
    const auto* begin = static_cast<const std::byte*>(from);
    queue({[to, copy = std::vector<std::byte>(begin, begin + bytes)] { move(to, copy.data(), copy.size()); }});
  }
  void upload_pinned(void* to, const void* pinned, std::size_t bytes) override {
    CHECK(!captures_);
    queue({[=] { move(to, pinned, bytes); }});
  }
  void download_pinned(void* pinned, const void* from, std::size_t bytes) override {
    CHECK(!captures_);
    queue({[=] { move(pinned, from, bytes); }});
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    CHECK(!captures_);
    catch_up();
    move(to, from, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    queue({[=] { move(to, from, bytes); }});
  }
  void fill(void* memory, std::byte value, std::size_t bytes) override {
    queue({[=] { std::memset(memory, std::to_integer<int>(value), bytes); }});
  }

  std::unique_ptr<Event> make_event() override { return std::make_unique<SimulatedEvent>(*this); }
  void begin_capture() override {
    CHECK(!captures_);
    captures_ = std::make_unique<SimulatedStep>();
  }
  std::unique_ptr<CapturedStep> end_capture() override {
    CHECK(captures_ != nullptr);
    return std::move(captures_);
  }
  void let_kernels_overlap(bool on) override { overlaps_ = on; }

  void mark(unsigned number) override {
    catch_up();
    marks_.at(number) = Clock::now();
  }
  double seconds_between(unsigned first, unsigned second) override {
    return std::chrono::duration<double>(marks_.at(second) - marks_.at(first)).count();
  }

  using Device::start;
  void start(CapturedStep& step) override {
    CHECK(!captures_);
    for (const Work& work : static_cast<SimulatedStep&>(step).works) queue(work);
  }

 protected:
  void run(const Launch& launch) override {
    const auto* begin = static_cast<const std::byte*>(launch.args);
    std::vector<std::byte> args(begin, begin + launch.args_bytes);
    if (launch.meets_peers) return queue({nullptr, std::move(args), launch, nullptr});
    const bool early = guarded_ != nullptr && overlaps_;
    queue({[this, launch, early, args = std::move(args)] {
      sim::Launch simulated = in_simulator(launch, args.data());
      if (early) simulated.on_dependent_wait = [this](bool previous_done) { guarded_->open(previous_done); };
      simulator_.run(simulated);
    }});
  }

 private:
  using Clock = std::chrono::steady_clock;

  class SimulatedEvent final : public Event {
   public:
    explicit SimulatedEvent(SimulatedDevice& device) : device_(device) {}
    void record() override {
      CHECK(!device_.captures_);
      place_ = device_.num_asked_;
    }
    void wait() override { device_.catch_up(place_); }

   private:
    SimulatedDevice& device_;
    std::uint64_t place_ = 0;
  };

  void* take(std::size_t bytes, const char* what, GuardedMemory* guarded) {
    CHECK(!captures_);
    const std::size_t whole = bytes > SIZE_MAX / 2 ? SIZE_MAX : (bytes + kBoundary - 1) / kBoundary * kBoundary;
    void* memory = nullptr;
    if (whole <= free_bytes())
      memory = guarded != nullptr ? guarded->take(whole) : std::aligned_alloc(kBoundary, whole);
    if (memory == nullptr) throw StartError("out of memory: " + std::to_string(bytes) + " bytes needed for " + what);
    std::memset(memory, 0xff, bytes);
    taken_ += whole;
    sizes_[memory] = {whole, guarded != nullptr};
    return memory;
  }
  static void move(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) std::memmove(to, from, bytes);
  }

  void queue(Work work) {
    if (captures_) {
      captures_->works.push_back(std::move(work));
      return;
    }
    asked_.push_back(std::move(work));
    ++num_asked_;
    if (pace_ != Pace::kLate) catch_up();
  }
  void catch_up() { catch_up(num_asked_); }
  void catch_up(std::uint64_t place);
  void run_first() {
    asked_.front().run();
    asked_.pop_front();
  }
  friend class SimulatedRanks;

  sim::Simulator simulator_;
  const Pace pace_;
  SimulatedRanks* const ranks_;             // null: a single device
  std::unique_ptr<GuardedMemory> guarded_;  // kEarly: all but constants
  bool overlaps_ = false;
  std::deque<Work> asked_;  // queued and not done
  std::uint64_t num_asked_ = 0;
  std::unique_ptr<SimulatedStep> captures_;  // between begin_capture() and end_capture()
  struct Taken {
    std::size_t bytes = 0;
    bool is_guarded = false;
  };
  std::map<void*, Taken> sizes_;
  std::uint64_t taken_ = 0;
  std::array<Clock::time_point, kMarks> marks_{};
};

class SimulatedRanks final : public Rendezvous {
 public:
  explicit SimulatedRanks(std::uint64_t seed) : simulator_(seed) {}
  void add(SimulatedDevice& device) { devices_.push_back(&device); }

  void meet(std::function<void(std::span<void* const> queues)> call) override {
    const auto common = std::make_shared<const std::function<void()>>(
        [call = std::move(call), queues = std::vector<void*>(devices_.size())] { call(queues); });
    for (SimulatedDevice* device : devices_) device->queue({nullptr, {}, {}, common});
  }
  // Runs all work before that on each rank; then what the ranks meet at.
  void come_together() {
    std::vector<sim::Launch> launches;
    for (SimulatedDevice* device : devices_) {
      while (!device->asked_.empty() && device->asked_.front().run) device->run_first();
      CHECK(!device->asked_.empty());  // else the others wait for a kernel that was never queued
      const Work& work = device->asked_.front();
      CHECK(work.common == devices_.front()->asked_.front().common);
      launches.push_back(in_simulator(work.launch, work.args.data()));
    }
    if (const auto common = devices_.front()->asked_.front().common) {
      (*common)();
    } else {
      simulator_.run_together(launches);
    }
    for (SimulatedDevice* device : devices_) device->asked_.pop_front();
  }

 private:
  sim::Simulator simulator_;
  std::vector<SimulatedDevice*> devices_;
};

void SimulatedDevice::catch_up(std::uint64_t place) {
  while (num_asked_ - asked_.size() < place) {
    if (asked_.front().run) {
      run_first();
    } else {
      CHECK(ranks_ != nullptr);
      ranks_->come_together();
    }
  }
}

}  // namespace

std::unique_ptr<Device> make_simulated_device(std::uint64_t seed, Pace pace) {
  return std::make_unique<SimulatedDevice>(seed, pace);
}

Ranks make_simulated_ranks(std::uint32_t count, std::uint64_t seed) {
  auto rendezvous = std::make_unique<SimulatedRanks>(seed);
  Ranks ranks;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    auto device = std::make_unique<SimulatedDevice>(seed + rank, Pace::kLate, rendezvous.get());
    rendezvous->add(*device);
    ranks.devices.push_back(std::move(device));
  }
  ranks.rendezvous = std::move(rendezvous);
  return ranks;
}

}  // namespace quire::gpu
