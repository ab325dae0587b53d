// NCCL between the GPUs of one process, found when it is asked for: the program starts, and serves from one GPU, where there is none.
//   Of it are used: ncclCommInitAll, ncclCommDestroy, ncclGroupStart, ncclGroupEnd, ncclAllGather, ncclAllReduce, ncclGetErrorString.
// Shape   numbers are f32. A group's calls, one of each rank, happen together.
// Owner   the library and its communicators; GPUs outlive them.
// Thread  one.
// Fails   constructor: StartError that names the library, the call and what NCCL says of it, or what to install. Later failures are the
//         devices': DeviceError that says which call failed.
// Source  NCCL 2's C interface. Unmeasured: NCCL refuses two ranks on one GPU, and there were never two.
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

  // A rank for each of the devices, by CUDA's numbers.
  explicit Nccl(std::span<const int> devices, const std::string& library = kLibrary);
  ~Nccl();
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  // Of each rank a queue (cudaStream_t) and its own memory: all[count · ranks] becomes what the ranks have in part[count], in their order.
  void gather(std::span<const float* const> part, std::size_t count, std::span<float* const> all,
              std::span<void* const> queues);
  // x[count] becomes the sum of all ranks', in whatever order NCCL takes.
  void sum(std::span<float* const> x, std::size_t count, std::span<void* const> queues);

 private:
  struct Comm;  // NCCL's
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
