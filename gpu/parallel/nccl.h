// NCCL between the GPUs of one process, loaded on demand: without the library the program starts, and serves from one
// GPU.
//   Functions used: ncclCommInitAll, ncclCommDestroy, ncclGroupStart, ncclGroupEnd, ncclAllGather, ncclAllReduce,
//   ncclGetErrorString.
// Shape   numbers are f32. The calls of a group, one per rank, run together.
// Owner   owns the library and its communicators; the GPUs outlive them.
// Thread  one.
// Fails   constructor: StartError that names the library, the call and NCCL's message, or what to install. Later:
//         DeviceError that names the failed call.
// Source  NCCL 2's C interface. Not measured: NCCL refuses two ranks on one GPU, and two GPUs were never available.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace quire::gpu {

class Nccl {
 public:
  static constexpr const char* kLibrary = "libnccl.so.2";

  // One rank per device; devices are CUDA's device numbers.
  explicit Nccl(std::span<const int> devices, const std::string& library = kLibrary);
  ~Nccl();
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  // All-gather. Each rank has a queue (cudaStream_t) and memory of its own: all[count · ranks] becomes the ranks'
  // part[count], in the order of ranks.
  void gather(std::span<const float* const> part, std::size_t count, std::span<float* const> all,
              std::span<void* const> queues);
  // All-reduce: x[count] becomes the sum over all ranks, in NCCL's order.
  void sum(std::span<float* const> x, std::size_t count, std::span<void* const> queues);

 private:
  struct Comm;  // ncclComm
  using Result = int;
  struct Calls {
    Result (*init_all)(Comm** comms, int num_devices, const int* devices) = nullptr;
    Result (*destroy)(Comm* comm) = nullptr;
    Result (*group_start)() = nullptr;
    Result (*group_end)() = nullptr;
    Result (*all_gather)(const void* part, void* all, std::size_t count, int type, Comm* comm, void* queue) = nullptr;
    Result (*all_reduce)(const void* from, void* to, std::size_t count, int type, int op, Comm* comm,
                         void* queue) = nullptr;
    const char* (*error_string)(Result result) = nullptr;
  };

  void load();
  void in_group(const char* call, const std::function<Result(std::size_t rank)>& ask);
  std::string failed(const char* call, Result result) const;
  void check(const char* call, Result result) const;

  const std::string library_;
  void* handle_ = nullptr;
  Calls calls_;
  std::vector<Comm*> comms_;
};

}  // namespace quire::gpu
