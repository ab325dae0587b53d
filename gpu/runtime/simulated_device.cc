#include "gpu/runtime/simulated_device.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "core/base/start_error.h"
#include "gpu/device/simulator.h"

namespace quire::gpu {
namespace {

constexpr std::size_t kBoundary = 256;
constexpr std::uint64_t kBytes = std::uint64_t{8} << 30;  // as if it had so many

class SimulatedDevice final : public Device {
 public:
  explicit SimulatedDevice(std::uint64_t seed) : simulator_(seed) {}

  std::string name() const override { return "simulated"; }
  const KernelTable& kernels() const override { return simulated_kernels(); }

  std::uint64_t free_bytes() override { return kBytes - std::min(kBytes, taken_); }
  void* allocate(std::size_t bytes, const char* what) override {
    const std::size_t whole = bytes > SIZE_MAX / 2 ? SIZE_MAX : (bytes + kBoundary - 1) / kBoundary * kBoundary;
    void* memory = whole > free_bytes() ? nullptr : std::aligned_alloc(kBoundary, whole);
    if (memory == nullptr) throw StartError("out of memory: " + std::to_string(bytes) + " bytes asked for " + what);
    std::memset(memory, 0xff, bytes);
    taken_ += whole;
    sizes_[memory] = whole;
    return memory;
  }
  void free(void* memory) noexcept override {
    const auto at = sizes_.find(memory);
    taken_ -= at->second;
    sizes_.erase(at);
    std::free(memory);
  }

  void upload(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void fill(void* memory, std::byte value, std::size_t bytes) override {
    std::memset(memory, std::to_integer<int>(value), bytes);
  }

  void mark(unsigned number) override { marks_.at(number) = Clock::now(); }
  double seconds_between(unsigned first, unsigned second) override {
    return std::chrono::duration<double>(marks_.at(second) - marks_.at(first)).count();
  }

 protected:
  void launch(const void* code, Index grid, unsigned threads, std::size_t shared_bytes, const void* args) override {
    simulator_.run({.thread = reinterpret_cast<void (*)(const void*, std::byte*)>(const_cast<void*>(code)),
                    .args = args,
                    .grid_x = grid.x,
                    .grid_y = grid.y,
                    .threads = threads,
                    .shared_bytes = shared_bytes});
  }

 private:
  using Clock = std::chrono::steady_clock;

  static void move(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) std::memmove(to, from, bytes);
  }

  sim::Simulator simulator_;
  std::map<void*, std::size_t> sizes_;
  std::uint64_t taken_ = 0;
  std::array<Clock::time_point, kMarks> marks_{};
};

}  // namespace

std::unique_ptr<Device> make_simulated_device(std::uint64_t seed) { return std::make_unique<SimulatedDevice>(seed); }

}  // namespace quire::gpu
