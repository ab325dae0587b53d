#include "gpu/runtime/simulated_device.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/start_error.h"
#include "gpu/device/simulator.h"
#include "gpu/runtime/guarded_memory.h"

namespace quire::gpu {
namespace {

constexpr std::size_t kBoundary = 256;
constexpr std::uint64_t kBytes = std::uint64_t{8} << 30;  // as if it had so many

using Work = std::function<void()>;

struct SimulatedStep final : CapturedStep {
  std::vector<Work> works;
};

class SimulatedDevice final : public Device {
 public:
  SimulatedDevice(std::uint64_t seed, Pace pace) : simulator_(seed), pace_(pace) {
    if (pace == Pace::kEarly) guarded_ = std::make_unique<GuardedMemory>(kBytes);
  }

  std::string name() const override { return "simulated"; }
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
    queue([to, copy = std::vector<std::byte>(begin, begin + bytes)] { move(to, copy.data(), copy.size()); });
  }
  void upload_pinned(void* to, const void* pinned, std::size_t bytes) override {
    CHECK(!captures_);
    queue([=] { move(to, pinned, bytes); });
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    CHECK(!captures_);
    catch_up();
    move(to, from, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    queue([=] { move(to, from, bytes); });
  }
  void fill(void* memory, std::byte value, std::size_t bytes) override {
    queue([=] { std::memset(memory, std::to_integer<int>(value), bytes); });
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
    const auto turn = [this](bool its_turn) { guarded_->open(its_turn); };
    const bool early = guarded_ != nullptr && overlaps_;
    queue([=, this, args = std::vector<std::byte>(begin, begin + launch.args_bytes)] {
      simulator_.run({.thread = reinterpret_cast<void (*)(const void*, std::byte*)>(const_cast<void*>(launch.code)),
                      .args = args.data(),
                      .grid_x = launch.grid.x,
                      .grid_y = launch.grid.y,
                      .threads = launch.threads,
                      .shared_bytes = launch.shared_bytes,
                      .turn = early ? turn : std::function<void(bool)>()});
    });
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
    if (memory == nullptr) throw StartError("out of memory: " + std::to_string(bytes) + " bytes asked for " + what);
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
  void catch_up(std::uint64_t place) {
    std::size_t done = 0;
    for (const std::uint64_t first = num_asked_ - asked_.size(); first + done < place; ++done) asked_[done]();
    asked_.erase(asked_.begin(), asked_.begin() + static_cast<std::ptrdiff_t>(done));
  }

  sim::Simulator simulator_;
  const Pace pace_;
  std::unique_ptr<GuardedMemory> guarded_;  // kEarly: all but constants
  bool overlaps_ = false;
  std::vector<Work> asked_;  // and not done
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

}  // namespace

std::unique_ptr<Device> make_simulated_device(std::uint64_t seed, Pace pace) {
  return std::make_unique<SimulatedDevice>(seed, pace);
}

}  // namespace quire::gpu
