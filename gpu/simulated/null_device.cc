#include "gpu/runtime/null_device.h"

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <string>

#include "core/base/check.h"
#include "core/base/start_error.h"
#include "gpu/simulated/simulated_kernels.h"

namespace quire::gpu {
namespace {

constexpr std::size_t kBoundary = 256;
constexpr std::uint64_t kBytes = std::uint64_t{141} << 30;  // an H200's
// Limits of a launch on sm_90.
constexpr std::uint32_t kMostBlocksY = 65535;
constexpr std::uint32_t kMostBlocksX = 0x7fffffff;
constexpr std::uint32_t kMostThreads = 1024;
constexpr std::size_t kMostShared = 227 * 1024;

struct NullStep final : CapturedStep {};
struct NullEvent final : Event {
  void record() override {}
  void wait() override {}
};

class NullDevice final : public Device {
 public:
  ~NullDevice() override {
    for (const auto& [memory, bytes] : taken_) munmap(memory, bytes);
  }

  std::string name() const override { return "null"; }
  std::string architecture() const override { return "none"; }
  const KernelTable& kernels() const override { return simulated_kernels(); }

  std::uint64_t free_bytes() override { return kBytes - num_bytes_; }
  void* allocate(std::size_t bytes, const char* what) override {
    CHECK(!captures_);
    const std::size_t whole = (bytes + kBoundary - 1) / kBoundary * kBoundary;
    void* memory = MAP_FAILED;
    if (whole <= free_bytes()) {
      memory = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    if (memory == MAP_FAILED) {
      throw StartError("out of device memory: " + std::to_string(bytes) + " bytes needed for " + what);
    }
    taken_[memory] = whole;
    num_bytes_ += whole;
    return memory;
  }
  void free(void* memory) noexcept override {
    const auto at = taken_.find(memory);
    CHECK(at != taken_.end());
    munmap(memory, at->second);
    num_bytes_ -= at->second;
    taken_.erase(at);
  }
  void* allocate_pinned(std::size_t bytes, const char* what) override { return allocate(bytes, what); }
  void free_pinned(void* memory) noexcept override { free(memory); }

  void upload(void* to, const void* /*from*/, std::size_t bytes) override { expect_free_of_capture(to, bytes); }
  void upload_pinned(void* to, const void* pinned, std::size_t bytes) override {
    expect_free_of_capture(to, bytes);
    expect_taken(pinned, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    expect_free_of_capture(from, bytes);
    if (bytes != 0) std::memset(to, 0, bytes);
  }
  void download_pinned(void* pinned, const void* from, std::size_t bytes) override {
    expect_free_of_capture(from, bytes);
    expect_taken(pinned, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    expect_taken(to, bytes);
    expect_taken(from, bytes);
  }
  void fill(void* memory, std::byte /*value*/, std::size_t bytes) override { expect_taken(memory, bytes); }

  std::unique_ptr<Event> make_event() override { return std::make_unique<NullEvent>(); }
  void begin_capture() override {
    CHECK(!captures_);
    captures_ = true;
  }
  std::unique_ptr<CapturedStep> end_capture() override {
    CHECK(captures_);
    captures_ = false;
    return std::make_unique<NullStep>();
  }
  using Device::start;
  void start(CapturedStep& /*step*/) override { CHECK(!captures_); }

  void mark(unsigned number) override { CHECK_LT(number, kMarks); }
  double seconds_between(unsigned /*first*/, unsigned /*second*/) override { return 1e-6; }

 protected:
  void run(const Launch& launch) override {
    CHECK(launch.code != nullptr);
    CHECK_LE(launch.grid.x, kMostBlocksX);
    CHECK_LE(launch.grid.y, kMostBlocksY);
    CHECK_LE(launch.threads, kMostThreads);
    CHECK_LE(launch.shared_bytes, kMostShared);
  }

 private:
  void expect_free_of_capture(const void* memory, std::size_t bytes) const {
    CHECK(!captures_);
    expect_taken(memory, bytes);
  }
  // The range lies within one allocation.
  void expect_taken(const void* memory, std::size_t bytes) const {
    if (bytes == 0) return;
    const auto behind = taken_.upper_bound(const_cast<void*>(memory));
    CHECK(behind != taken_.begin());
    const auto& [begin, size] = *std::prev(behind);
    const auto at =
        static_cast<std::size_t>(static_cast<const std::byte*>(memory) - static_cast<const std::byte*>(begin));
    CHECK_LE(at, size);
    CHECK_LE(bytes, size - at);
  }

  std::map<void*, std::size_t> taken_;
  std::uint64_t num_bytes_ = 0;
  bool captures_ = false;
};

}  // namespace

std::unique_ptr<Device> make_null_device() { return std::make_unique<NullDevice>(); }

}  // namespace quire::gpu
