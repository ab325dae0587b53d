// A GPU as the ops see it: memory, and one queue of copies and kernels that run in the order they were asked for.
//   CUDA (gpu/cuda), or the simulator on the host (simulated_device.h).
// Owner   memory is a DeviceMemory's, which its device outlives.
// Thread  made by any; then the engine thread.
// Fails   allocate(): StartError. Whatever goes wrong later is the device's or our fault: the process ends, and says which call
//         failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "gpu/kernels/table.h"

namespace quire::gpu {

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  virtual const KernelTable& kernels() const = 0;

  // Of its memory, now; whoever else uses the device changes it.
  virtual std::uint64_t free_bytes() = 0;

  virtual void* allocate(std::size_t bytes, const char* what) = 0;  // on a boundary of 256 bytes
  virtual void free(void* memory) noexcept = 0;

  // What is uploaded may change as soon as this returns.
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;  // waits for it
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void fill(void* memory, std::byte value, std::size_t bytes) = 0;

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
    launch(entry.code, grid, Kernel::kThreads, shared_bytes_of<Kernel>(), &args);
  }

 protected:
  virtual void launch(const void* code, Index grid, unsigned threads, std::size_t shared_bytes, const void* args) = 0;

 private:
  friend class DeviceMemory;
  std::uint64_t num_taken_ = 0;
};

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device& device, std::size_t bytes, const char* what)
      : device_(&device), data_(bytes == 0 ? nullptr : device.allocate(bytes, what)), bytes_(bytes) {
    if (bytes > 0) ++device.num_taken_;
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

}  // namespace quire::gpu
