#include "gpu/runtime/simulated_device.h"

#include <cstdlib>
#include <cstring>

#include "core/base/start_error.h"
#include "gpu/device/simulator.h"

namespace quire::gpu {
namespace {

constexpr std::size_t kBoundary = 256;

class SimulatedDevice final : public Device {
 public:
  explicit SimulatedDevice(std::uint64_t seed) : simulator_(seed) {}

  std::string name() const override { return "simulated"; }
  const KernelTable& kernels() const override { return simulated_kernels(); }

  void* allocate(std::size_t bytes, const char* what) override {
    void* memory =
        bytes > SIZE_MAX / 2 ? nullptr : std::aligned_alloc(kBoundary, (bytes + kBoundary - 1) / kBoundary * kBoundary);
    if (memory == nullptr) throw StartError("out of memory: " + std::to_string(bytes) + " bytes asked for " + what);
    std::memset(memory, 0xff, bytes);
    return memory;
  }
  void free(void* memory) noexcept override { std::free(memory); }

  void upload(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { move(to, from, bytes); }
  void fill(void* memory, std::byte value, std::size_t bytes) override {
    std::memset(memory, std::to_integer<int>(value), bytes);
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
  static void move(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) std::memmove(to, from, bytes);
  }

  sim::Simulator simulator_;
};

}  // namespace

std::unique_ptr<Device> make_simulated_device(std::uint64_t seed) { return std::make_unique<SimulatedDevice>(seed); }

}  // namespace quire::gpu
