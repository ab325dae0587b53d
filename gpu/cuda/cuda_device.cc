#include "gpu/cuda/cuda_device.h"

#include <cuda_runtime_api.h>

#include <array>

#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::gpu {
namespace {

constexpr std::size_t kPlainShared = 48 * 1024;  // bytes that a kernel gets without asking

std::string failed(const char* call, cudaError_t error) {
  return std::string(call) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
}

void check_start(const char* call, cudaError_t error) {
  if (error != cudaSuccess) throw StartError(failed(call, error));
}

// While serving: what is in the cache is lost, nobody can go on.
void check(const char* call, cudaError_t error) {
  if (error == cudaSuccess) return;
  log_error("device_failed", "what=\"{}\"", failed(call, error));
  CHECK(error == cudaSuccess);
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int number) {
    check_start("cudaSetDevice", cudaSetDevice(number));
    cudaDeviceProp properties{};
    check_start("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, number));
    name_ = properties.name;
    cudaFuncAttributes attributes{};
    const cudaError_t code = cudaFuncGetAttributes(&attributes, kernels().norm.code);
    if (code != cudaSuccess)
      throw StartError(name_ + " runs no kernel of this build: " + failed("cudaFuncGetAttributes", code));
    check_start("cudaStreamCreate", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~CudaDevice() override {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }

  std::string name() const override { return name_; }
  const KernelTable& kernels() const override { return cuda_kernels(); }

  void* allocate(std::size_t bytes, const char* what) override {
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, bytes);
    if (error != cudaSuccess) {
      throw StartError("out of device memory: " + std::to_string(bytes) + " bytes asked for " + what + ": " +
                       failed("cudaMalloc", error));
    }
    return memory;
  }
  void free(void* memory) noexcept override {
    cudaStreamSynchronize(stream_);
    cudaFree(memory);
  }

  void upload(void* to, const void* from, std::size_t bytes) override {  // pageable memory is read before this returns
    check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
    check("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
  }
  void fill(void* memory, std::byte value, std::size_t bytes) override {
    check("cudaMemsetAsync", cudaMemsetAsync(memory, std::to_integer<int>(value), bytes, stream_));
  }

 protected:
  void launch(const void* code, Index grid, unsigned threads, std::size_t shared_bytes, const void* args) override {
    if (shared_bytes > kPlainShared) {
      check("cudaFuncSetAttribute",
            cudaFuncSetAttribute(code, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
    }
    std::array<void*, 1> arguments = {const_cast<void*>(args)};
    check("cudaLaunchKernel",
          cudaLaunchKernel(code, {grid.x, grid.y, 1}, {threads, 1, 1}, arguments.data(), shared_bytes, stream_));
  }

 private:
  std::string name_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(int number) {
  int count = 0;
  check_start("cudaGetDeviceCount", cudaGetDeviceCount(&count));
  if (number >= count) {
    throw StartError("no CUDA device " + std::to_string(number) + ": there are " + std::to_string(count));
  }
  return std::make_unique<CudaDevice>(number);
}

}  // namespace quire::gpu
