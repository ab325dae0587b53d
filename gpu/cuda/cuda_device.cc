#include "gpu/cuda/cuda_device.h"

#include <cuda_runtime_api.h>

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::gpu {
namespace {

constexpr std::size_t kPlainShared = 48 * 1024;  // bytes of shared memory that a kernel may use without an attribute

std::string failed(const char* call, cudaError_t error) {
  return std::string(call) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
}

void check_start(const char* call, cudaError_t error) {
  if (error != cudaSuccess) throw StartError(failed(call, error));
}

// For calls while serving: after a failure the cache is lost, and all streams end.
void check(const char* call, cudaError_t error) {
  if (error == cudaSuccess) return;
  log_error("device_failed", "{}", failed(call, error));
  throw DeviceError(failed(call, error));
}

struct CudaStep final : CapturedStep {
  explicit CudaStep(cudaGraphExec_t instance) : graph(instance) {}
  ~CudaStep() override { cudaGraphExecDestroy(graph); }  // a graph that runs is destroyed when it has ended
  CudaStep(const CudaStep&) = delete;
  CudaStep& operator=(const CudaStep&) = delete;
  cudaGraphExec_t graph = nullptr;
};

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(cudaStream_t stream) : stream_(stream) {
    check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  void record() override { check("cudaEventRecord", cudaEventRecord(event_, stream_)); }
  void wait() override { check("cudaEventSynchronize", cudaEventSynchronize(event_)); }

 private:
  cudaStream_t stream_;
  cudaEvent_t event_ = nullptr;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int number) : number_(number) {
    check_start("cudaSetDevice", try_to_make_current());
    cudaDeviceProp properties{};
    check_start("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, number));
    name_ = properties.name;
    if (cuda_launch_facts() != launch_facts()) {
      throw StartError("the kernels are from another build than this program: build both from the same sources");
    }
    architecture_ = "sm_" + std::to_string(properties.major) + std::to_string(properties.minor);
    can_overlap_ = properties.major >= 9;
    cudaFuncAttributes attributes{};
    const cudaError_t code = cudaFuncGetAttributes(&attributes, kernels().norm.code);
    if (code != cudaSuccess)
      throw StartError(name_ + " cannot run the kernels of this build: " + failed("cudaFuncGetAttributes", code));
    load_kernels();
    check_start("cudaStreamCreate", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~CudaDevice() override {
    try_to_make_current();
    cudaStreamSynchronize(stream_);
    for (cudaEvent_t event : marks_) {
      if (event != nullptr) cudaEventDestroy(event);
    }
    cudaStreamDestroy(stream_);
  }

  std::string name() const override { return name_; }
  std::string architecture() const override { return architecture_; }
  const KernelTable& kernels() const override { return cuda_kernels(); }

  std::uint64_t free_bytes() override {
    std::size_t free = 0;
    std::size_t total = 0;
    make_current();
    check_start("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
    check_start("cudaMemGetInfo", cudaMemGetInfo(&free, &total));
    return free;
  }
  void* allocate(std::size_t bytes, const char* what) override {
    make_current();
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // reported here
      throw StartError("out of device memory: " + std::to_string(bytes) + " bytes needed for " + what + ": " +
                       failed("cudaMalloc", error));
    }
    check_start("cudaMalloc", error);  // an earlier error, which every later call returns
    // The memory begins as 0: attention multiplies numbers that no row sees by 0, and it is not documented how a tensor
    // core adds 0 times a huge number that was left there.
    check_start("cudaMemsetAsync", cudaMemsetAsync(memory, 0, bytes, stream_));
    return memory;
  }
  void free(void* memory) noexcept override {
    try_to_make_current();
    cudaStreamSynchronize(stream_);
    cudaFree(memory);
  }

  // Pageable memory is read before cudaMemcpyAsync returns.
  void upload(void* to, const void* from, std::size_t bytes) override {
    make_current();
    check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    make_current();
    check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
    check("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    make_current();
    check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
  }
  void fill(void* memory, std::byte value, std::size_t bytes) override {
    make_current();
    check("cudaMemsetAsync", cudaMemsetAsync(memory, std::to_integer<int>(value), bytes, stream_));
  }

  void* allocate_pinned(std::size_t bytes, const char* what) override {
    make_current();
    void* memory = nullptr;
    const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
    if (error != cudaSuccess) {
      throw StartError("out of pinned memory: " + std::to_string(bytes) + " bytes needed for " + what + ": " +
                       failed("cudaHostAlloc", error));
    }
    return memory;
  }
  void free_pinned(void* memory) noexcept override {
    try_to_make_current();
    cudaStreamSynchronize(stream_);
    cudaFreeHost(memory);
  }
  void upload_pinned(void* to, const void* pinned, std::size_t bytes) override { copy_by_kernel(to, pinned, bytes); }
  void download_pinned(void* pinned, const void* from, std::size_t bytes) override {
    copy_by_kernel(pinned, from, bytes);
  }
  std::unique_ptr<Event> make_event() override {
    make_current();
    return std::make_unique<CudaEvent>(stream_);
  }

  void begin_capture() override {
    make_current();
    check("cudaStreamBeginCapture", cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  }
  std::unique_ptr<CapturedStep> end_capture() override {
    cudaGraph_t graph = nullptr;
    check("cudaStreamEndCapture", cudaStreamEndCapture(stream_, &graph));
    cudaGraphExec_t instance = nullptr;
    const cudaError_t made = cudaGraphInstantiate(&instance, graph, 0);
    check("cudaGraphDestroy", cudaGraphDestroy(graph));
    if (made == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // not an error: such steps run kernel by kernel
      log_warn("device_memory", "no memory to capture a step: its kernels are launched one by one");
      return nullptr;
    }
    check("cudaGraphInstantiate", made);
    auto step = std::make_unique<CudaStep>(instance);
    check("cudaGraphUpload", cudaGraphUpload(step->graph, stream_));
    return step;
  }
  using Device::start;
  void start(CapturedStep& step) override {
    make_current();
    check("cudaGraphLaunch", cudaGraphLaunch(static_cast<CudaStep&>(step).graph, stream_));
  }

  void let_kernels_overlap(bool on) override { overlaps_ = on && can_overlap_; }
  void set_carveout(int percent) override { carveout_ = percent; }

  void mark(unsigned number) override {
    make_current();
    cudaEvent_t& event = marks_.at(number);
    if (event == nullptr) check("cudaEventCreate", cudaEventCreate(&event));
    check("cudaEventRecord", cudaEventRecord(event, stream_));
  }
  double seconds_between(unsigned first, unsigned second) override {
    float milliseconds = 0.0f;
    check("cudaEventSynchronize", cudaEventSynchronize(marks_.at(second)));
    check("cudaEventElapsedTime", cudaEventElapsedTime(&milliseconds, marks_.at(first), marks_.at(second)));
    return static_cast<double>(milliseconds) * 1e-3;
  }

 protected:
  bool has_code(const void* kernel) override {
    make_current();
    cudaFuncAttributes attributes{};
    const bool has = cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess;
    cudaGetLastError();  // a kernel without code is not an error
    return has;
  }
  void run(const Launch& launch) override {
    make_current();
    prepare(launch);
    std::array<void*, 1> arguments = {const_cast<void*>(launch.args)};
    cudaLaunchAttribute before_wait{};  // in a captured step, a programmatic edge of the graph
    before_wait.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    before_wait.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = {launch.grid.x, launch.grid.y, 1};
    config.blockDim = {launch.threads, 1, 1};
    config.dynamicSmemBytes = launch.shared_bytes;
    config.stream = stream_;
    config.attrs = &before_wait;
    config.numAttrs = overlaps_ ? 1 : 0;
    check("cudaLaunchKernelExC", cudaLaunchKernelExC(&config, launch.code, arguments.data()));
  }

 private:
  // Not by cudaMemcpyAsync: the queue would wait for another engine of the GPU, which may take it a millisecond.
  void copy_by_kernel(void* to, const void* from, std::size_t bytes) {
    CHECK_LE(bytes, std::size_t{1} << 30);  // more than a step sends
    const auto count = static_cast<std::uint32_t>(bytes);
    start(kernels().copy_bytes, {CopyBytes::blocks_for(count), 1}, CopyBytes::Args{to, from, count});
  }
  // Loads all kernels at start. A load at first launch may wait for all that runs on the device, and so for another
  // rank's kernel that waits for this one; also, the first step of every kind would take longer.
  void load_kernels() {
    using Codes = std::array<const void*, sizeof(KernelTable) / sizeof(const void*)>;
    for (const void* code : std::bit_cast<Codes>(kernels())) {
      if (code != nullptr) has_code(code);
    }
  }
  // Sets a kernel's attributes once; a kernel that is captured ran before.
  void prepare(const Launch& launch) {
    if (!prepared_.insert(launch.code).second) return;
    if (launch.shared_bytes > kPlainShared) {
      check("cudaFuncSetAttribute", cudaFuncSetAttribute(launch.code, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                         static_cast<int>(launch.shared_bytes)));
    }
    if (carveout_ >= 0) {
      check("cudaFuncSetAttribute",
            cudaFuncSetAttribute(launch.code, cudaFuncAttributePreferredSharedMemoryCarveout, carveout_));
    }
  }
  // CUDA has a current device per thread, at first device 0.
  void make_current() const {
    if (current() != number_) check("cudaSetDevice", try_to_make_current());
  }
  cudaError_t try_to_make_current() const noexcept {
    const cudaError_t error = cudaSetDevice(number_);
    current() = error == cudaSuccess ? number_ : -1;
    return error;
  }
  static int& current() {
    thread_local int number = -1;
    return number;
  }

  friend class CudaRanks;

  const int number_;
  std::string name_;
  std::string architecture_;
  cudaStream_t stream_ = nullptr;
  bool can_overlap_ = false;
  bool overlaps_ = false;
  int carveout_ = -1;
  std::unordered_set<const void*> prepared_;  // kernels whose attributes are set
  std::array<cudaEvent_t, kMarks> marks_{};
};

class CudaRanks final : public Rendezvous {
 public:
  // Gives the device and the earlier ones access to each other's memory.
  void add(CudaDevice& device) {
    for (CudaDevice* other : devices_) {
      if (other->number_ == device.number_) {
        // No dependent launch: a block that starts early would hold a multiprocessor that the other rank's kernel
        // needs.
        other->can_overlap_ = device.can_overlap_ = false;
        continue;
      }
      let_reach(device, *other);
      let_reach(*other, device);
    }
    devices_.push_back(&device);
    queues_.push_back(device.stream_);
  }
  void meet(std::function<void(std::span<void* const> queues)> call) override { call(queues_); }

 private:
  static void let_reach(CudaDevice& from, CudaDevice& to) {
    int can = 0;
    check_start("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&can, from.number_, to.number_));
    if (can == 0) {
      throw StartError("CUDA device " + std::to_string(from.number_) + " cannot access the memory of device " +
                       std::to_string(to.number_) +
                       " (cudaDeviceCanAccessPeer): ranks need NVLink, or PCIe with peer access");
    }
    from.make_current();
    const cudaError_t error = cudaDeviceEnablePeerAccess(to.number_, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
      cudaGetLastError();  // as wanted
    } else {
      check_start("cudaDeviceEnablePeerAccess", error);
    }
  }

  std::vector<CudaDevice*> devices_;
  std::vector<void*> queues_;
};

std::unique_ptr<CudaDevice> device_of(int number) {
  int count = 0;
  check_start("cudaGetDeviceCount", cudaGetDeviceCount(&count));
  if (number >= count) {
    throw StartError("no CUDA device " + std::to_string(number) + ": cudaGetDeviceCount returns " +
                     std::to_string(count));
  }
  return std::make_unique<CudaDevice>(number);
}

}  // namespace

bool has_cuda() { return true; }

int num_cuda_devices() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();  // no device is not an error
  return 0;
}

std::unique_ptr<Device> make_cuda_device(int number) { return device_of(number); }

Ranks make_cuda_ranks(std::span<const int> numbers) {
  auto rendezvous = std::make_unique<CudaRanks>();
  Ranks ranks;
  for (const int number : numbers) {
    auto device = device_of(number);
    rendezvous->add(*device);
    ranks.devices.push_back(std::move(device));
  }
  ranks.rendezvous = std::move(rendezvous);
  return ranks;
}

}  // namespace quire::gpu
