#include "gpu/parallel/nccl.h"

#include <dlfcn.h>

#include <utility>

#include "core/base/log.h"
#include "core/base/start_error.h"
#include "gpu/runtime/device.h"

namespace quire::gpu {
namespace {

// Values of nccl.h.
constexpr int kSuccess = 0;
constexpr int kFloat32 = 7;
constexpr int kSum = 0;

}  // namespace

Nccl::Nccl(std::span<const int> devices, const std::string& library) : library_(library) {
  handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    throw StartError("GPUs that run one model together need NCCL: " + std::string(dlerror()) +
                     "; install libnccl2 (or the Python package nvidia-nccl-cu13, its lib folder in LD_LIBRARY_PATH)");
  }
  try {
    load();
    comms_.resize(devices.size());
    const Result result = calls_.init_all(comms_.data(), static_cast<int>(devices.size()), devices.data());
    if (result != kSuccess) throw StartError(failed("ncclCommInitAll", result));
  } catch (...) {
    dlclose(handle_);
    throw;
  }
}

Nccl::~Nccl() {
  for (Comm* comm : comms_) calls_.destroy(comm);
  dlclose(handle_);
}

void Nccl::load() {
  const auto find = [&](auto& call, const char* name) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(dlsym(handle_, name));
    if (call == nullptr) throw StartError(library_ + " has no " + name + ": it is not NCCL 2");
  };
  find(calls_.init_all, "ncclCommInitAll");
  find(calls_.destroy, "ncclCommDestroy");
  find(calls_.group_start, "ncclGroupStart");
  find(calls_.group_end, "ncclGroupEnd");
  find(calls_.all_gather, "ncclAllGather");
  find(calls_.all_reduce, "ncclAllReduce");
  find(calls_.error_string, "ncclGetErrorString");
}

void Nccl::gather(std::span<const float* const> part, std::size_t count, std::span<float* const> all,
                  std::span<void* const> queues) {
  in_group("ncclAllGather", [&](std::size_t rank) {
    return calls_.all_gather(part[rank], all[rank], count, kFloat32, comms_[rank], queues[rank]);
  });
}

void Nccl::sum(std::span<float* const> x, std::size_t count, std::span<void* const> queues) {
  in_group("ncclAllReduce", [&](std::size_t rank) {
    return calls_.all_reduce(x[rank], x[rank], count, kFloat32, kSum, comms_[rank], queues[rank]);
  });
}

// One thread makes the calls of all ranks: outside of a group the first call would wait for the second, which would
// never be made.
void Nccl::in_group(const char* call, const std::function<Result(std::size_t rank)>& ask) {
  check("ncclGroupStart", calls_.group_start());
  for (std::size_t rank = 0; rank < comms_.size(); ++rank) check(call, ask(rank));
  check("ncclGroupEnd", calls_.group_end());
}

std::string Nccl::failed(const char* call, Result result) const {
  return library_ + ": " + call + ": " + calls_.error_string(result) + " (" + std::to_string(result) + ")";
}

void Nccl::check(const char* call, Result result) const {
  if (result == kSuccess) return;
  log_error("device_failed", "{}", failed(call, result));
  throw DeviceError(failed(call, result));
}

}  // namespace quire::gpu
