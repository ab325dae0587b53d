// A GPU as the ops see it: memory, and one queue (stream) of copies and kernels that run in the order of the calls.
// Implemented by CUDA (gpu/cuda), by the simulator on the host (simulated_device.h), and by null_device.h.
//   A captured step (CUDA graph) is a recorded piece of the queue that can run any number of times: kernels, and copies
//   on the device, with their recorded arguments. Whatever changes between runs lies in memory that these point to.
//   Kernels may start before the previous one has ended (programmatic dependent launch, gpu/device/simt.h), which hides
//   the time to start them.
//   Constants are memory that no kernel writes: kernels may read it before the dependent launch wait. Copies and
//   uploads are not kernels: nothing overtakes them, and they overtake nothing.
// Owner   memory belongs to a DeviceMemory or PinnedMemory. The device outlives them, events and captured steps.
// Thread  made by any; then the engine thread.
// Fails   allocate(), allocate_pinned(): StartError. Later failures: DeviceError with the failed call; the content of
//         device memory is then lost, and the device must not be used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "gpu/runtime/launches.h"

namespace quire::gpu {

class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A position in the queue.
class Event {
 public:
  virtual ~Event() = default;
  virtual void record() = 0;  // behind everything queued so far
  virtual void wait() = 0;    // until everything before it is done; returns at once if nothing was recorded
};

class CapturedStep {
 public:
  virtual ~CapturedStep() = default;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  // "sm_90" or the like; "host" for the simulator. Tensor cores of different architectures round sums differently.
  virtual std::string architecture() const = 0;
  virtual const KernelTable& kernels() const = 0;

  // Free memory at the moment; other users of the device change it.
  virtual std::uint64_t free_bytes() = 0;

  // Aligned to 256 bytes. The memory begins as 0, in the simulator as NaN.
  virtual void* allocate(std::size_t bytes, const char* what) = 0;
  virtual void* allocate_constant(std::size_t bytes, const char* what) { return allocate(bytes, what); }
  virtual void free(void* memory) noexcept = 0;

  // The source may change as soon as this returns.
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;  // waits for the copy
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void fill(void* memory, std::byte value, std::size_t bytes) = 0;

  // Host memory that the device accesses by itself.
  virtual void* allocate_pinned(std::size_t bytes, const char* what) = 0;
  virtual void free_pinned(void* memory) noexcept = 0;
  // Asynchronous copy from pinned memory, which must not change until an event recorded behind the copy has passed.
  virtual void upload_pinned(void* to, const void* pinned, std::size_t bytes) = 0;
  // Asynchronous copy to pinned memory: done when an event recorded behind it has passed. download() waits for the
  // whole queue instead.
  virtual void download_pinned(void* pinned, const void* from, std::size_t bytes) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;

  // Between these two calls, work is recorded and not run. Not allowed then: allocation, uploads, downloads, events.
  virtual void begin_capture() = 0;
  virtual std::unique_ptr<CapturedStep> end_capture() = 0;  // null: out of memory
  virtual void start(CapturedStep& step) = 0;

  // Allows or forbids programmatic dependent launch; ignored by devices that lack it. Off at first.
  virtual void let_kernels_overlap(bool) {}
  // Percentage of shared memory that kernels launched from now on prefer; -1: the driver's choice. Same results.
  virtual void set_carveout(int /*percent*/) {}

  // True if the device has code for the kernel: not every machine has every kernel.
  template <typename Kernel>
  bool runs(const Entry<Kernel>& entry) {
    return entry.code != nullptr && has_code(entry.code);
  }

  // From now on kernels are added to `list` instead of being run; null: no longer. No other call is allowed meanwhile.
  void record(LaunchList* list) { recorded_ = list; }
  void start(const Launch& launch) { run(launch); }

  // Number of allocations so far, including freed ones.
  std::uint64_t num_taken() const { return num_taken_; }

  // mark() records the time at this place of the queue, under a number. seconds_between() waits for two marks.
  static constexpr unsigned kMarks = 1024;
  virtual void mark(unsigned number) = 0;
  virtual double seconds_between(unsigned first, unsigned second) = 0;

  // Launches a kernel; does nothing if the grid is empty.
  template <typename Kernel>
  void start(const Entry<Kernel>& entry, Index grid, const typename Kernel::Args& args) {
    if (grid.x == 0 || grid.y == 0) return;
    const Launch launch{entry.code, grid,         Kernel::kThreads,     shared_bytes_of<Kernel>(),
                        &args,      sizeof(args), meets_peers<Kernel>()};
    if (recorded_ != nullptr) return recorded_->add(launch, args);
    run(launch);
  }

 protected:
  virtual void run(const Launch& launch) = 0;
  virtual bool has_code(const void* /*kernel*/) { return true; }

 private:
  friend class DeviceMemory;
  LaunchList* recorded_ = nullptr;
  std::uint64_t num_taken_ = 0;
};

enum class Use : std::uint8_t { kAny, kConstant };

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device& device, std::size_t bytes, const char* what, Use use = Use::kAny)
      : device_(&device), bytes_(bytes) {
    if (bytes == 0) return;
    data_ = use == Use::kConstant ? device.allocate_constant(bytes, what) : device.allocate(bytes, what);
    ++device.num_taken_;
  }
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceMemory() {
    if (data_ != nullptr) device_->free(data_);
  }

  void* data() const { return data_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class PinnedMemory {
 public:
  PinnedMemory(Device& device, std::size_t bytes, const char* what)
      : device_(&device), data_(bytes == 0 ? nullptr : device.allocate_pinned(bytes, what)), bytes_(bytes) {}
  PinnedMemory(PinnedMemory&& other) noexcept
      : device_(other.device_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  PinnedMemory& operator=(PinnedMemory&&) = delete;
  ~PinnedMemory() {
    if (data_ != nullptr) device_->free_pinned(data_);
  }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t bytes() const { return bytes_; }

 private:
  Device* device_;
  void* data_;
  std::size_t bytes_;
};

}  // namespace quire::gpu
