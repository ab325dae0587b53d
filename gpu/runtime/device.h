// A GPU as the ops see it: memory, and one queue of copies and kernels that run in the order they were asked for.
//   CUDA (gpu/cuda), or the simulator on the host (simulated_device.h).
//   A captured step is a piece of that queue, kept to be run as often as one likes: kernels, and copies on the device, with the
//   arguments that they were asked for with. What changes from one run to the next lies in memory that these point to.
//   Kernels may begin before their turn (gpu/device/simt.h), so that what they wait for hides how long beginning takes.
//   Constants are memory that no kernel writes: it may be read before a kernel's turn. Copies and uploads are no kernels: nothing
//   overtakes them, and they overtake nothing.
// Owner   memory is a DeviceMemory's or a PinnedMemory's, which its device outlives; so it does events and captured steps.
// Thread  made by any; then the engine thread.
// Fails   allocate(), allocate_pinned(): StartError. Whatever goes wrong later: DeviceError with the call that
//         failed; what is in the device's memory is lost then, and nothing more is to be asked of it.
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

// A place in the queue.
class Event {
 public:
  virtual ~Event() = default;
  virtual void record() = 0;  // behind what has been asked for by now
  virtual void wait() = 0;    // until all before that has happened; at once where nothing was recorded
};

class CapturedStep {
 public:
  virtual ~CapturedStep() = default;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  // Of its processors: "sm_90" or the like; "host" of the simulator. Tensor cores of different ones round sums
  // differently.
  virtual std::string architecture() const = 0;
  virtual const KernelTable& kernels() const = 0;

  // Of its memory, now; whoever else uses the device changes it.
  virtual std::uint64_t free_bytes() = 0;

  // On a boundary of 256 bytes; it begins as 0, on the simulator as NaN.
  virtual void* allocate(std::size_t bytes, const char* what) = 0;
  virtual void* allocate_constant(std::size_t bytes, const char* what) { return allocate(bytes, what); }
  virtual void free(void* memory) noexcept = 0;

  // What is uploaded may change as soon as this returns.
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;  // waits for it
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void fill(void* memory, std::byte value, std::size_t bytes) = 0;

  // Host memory that the device reads by itself.
  virtual void* allocate_pinned(std::size_t bytes, const char* what) = 0;
  virtual void free_pinned(void* memory) noexcept = 0;
  // From such memory, when the queue comes to it: until an event behind it has passed it must not change.
  virtual void upload_pinned(void* to, const void* pinned, std::size_t bytes) = 0;
  // To such memory, when the queue comes to it: what download() brings waits for all that is queued, this for an event behind it.
  virtual void download_pinned(void* pinned, const void* from, std::size_t bytes) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;

  // Between these two nothing happens: it is kept. Not to be asked for then: memory, uploads, downloads, events.
  virtual void begin_capture() = 0;
  virtual std::unique_ptr<CapturedStep> end_capture() = 0;  // null: there is no memory for one
  virtual void start(CapturedStep& step) = 0;

  // Whether kernels may begin before their turn; a device that cannot do it goes on as ever. At first they do not.
  virtual void let_kernels_overlap(bool) {}
  // Percentage of shared memory that all kernels started from now on prefer; -1: the driver's choice. No other results.
  virtual void set_carveout(int /*percent*/) {}

  // Whether it has code for the kernel: not every machine has every kernel.
  template <typename Kernel>
  bool runs(const Entry<Kernel>& entry) {
    return entry.code != nullptr && has_code(entry.code);
  }

  // From now on kernels are written down in `list` instead of being run; null: no more. Nothing else is to be asked for meanwhile.
  void record(LaunchList* list) { recorded_ = list; }
  void start(const Launch& launch) { run(launch); }

  // How often memory was taken so far, what was given back included.
  std::uint64_t num_taken() const { return num_taken_; }

  // What time it is when the queue comes to here, kept under a number; and the time between two such, waited for.
  static constexpr unsigned kMarks = 1024;
  virtual void mark(unsigned number) = 0;
  virtual double seconds_between(unsigned first, unsigned second) = 0;

  // Nothing where the grid is empty.
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
