// A library that looks like NCCL and works in host memory, so that what NCCL is asked for can be tested without GPUs. It is as strict: calls
// of a group belong together, one of each rank, or it refuses. It adds in the opposite order of ranks, since NCCL promises none.
//   fake_nccl_fail(call)    that call fails from now on; null: none does
//   fake_nccl_calls()       gathers and sums done so far
#include <cstring>
#include <string>
#include <vector>

struct ncclComm {
  std::size_t rank = 0;
  std::size_t num_ranks = 0;
};

namespace {

enum Result { kSuccess = 0, kInternal = 3, kInvalidArgument = 4, kInvalidUsage = 5 };

struct Ask {
  bool sums = false;
  std::size_t rank = 0;
  std::size_t num_ranks = 0;
  const float* from = nullptr;
  float* to = nullptr;
  std::size_t count = 0;
};

std::string failing;
int num_calls = 0;
int depth = 0;
std::vector<Ask> asked;

bool fails(const char* call) { return failing == call; }

int run() {
  if (asked.empty()) return kSuccess;
  const std::size_t num_ranks = asked.front().num_ranks;
  if (asked.size() != num_ranks) return kInvalidUsage;  // NCCL would wait for the others for ever
  for (std::size_t i = 0; i < num_ranks; ++i) {
    if (asked[i].rank != i || asked[i].sums != asked[0].sums || asked[i].count != asked[0].count)
      return kInvalidArgument;
  }
  const std::size_t count = asked.front().count;
  std::vector<float> result(asked[0].sums ? count : count * num_ranks);
  for (std::size_t i = num_ranks; i-- > 0;) {
    if (!asked[0].sums) {
      std::memcpy(result.data() + i * count, asked[i].from, count * sizeof(float));
    } else {
      for (std::size_t k = 0; k < count; ++k) {
        result[k] = i + 1 == num_ranks ? asked[i].from[k] : result[k] + asked[i].from[k];
      }
    }
  }
  for (const Ask& ask : asked) std::memcpy(ask.to, result.data(), result.size() * sizeof(float));
  asked.clear();
  ++num_calls;
  return kSuccess;
}

int ask(const char* call, const Ask& what, int type) {
  if (fails(call)) return kInternal;
  if (type != 7) return kInvalidArgument;
  asked.push_back(what);
  return depth > 0 ? kSuccess : run();
}

}  // namespace

extern "C" {

void fake_nccl_fail(const char* call) { failing = call == nullptr ? "" : call; }
int fake_nccl_calls() { return num_calls; }

int ncclCommInitAll(ncclComm** comms, int num_devices, const int* devices) {
  if (fails("ncclCommInitAll")) return kInternal;
  for (int i = 0; i < num_devices; ++i) {
    for (int k = 0; k < i; ++k) {
      if (devices[i] == devices[k]) return kInvalidUsage;  // two ranks on one GPU
    }
  }
  for (int i = 0; i < num_devices; ++i) {
    comms[i] = new ncclComm{static_cast<std::size_t>(i), static_cast<std::size_t>(num_devices)};
  }
  return kSuccess;
}
int ncclCommDestroy(ncclComm* comm) {
  delete comm;
  return kSuccess;
}
int ncclGroupStart() {
  ++depth;
  return fails("ncclGroupStart") ? kInternal : kSuccess;
}
int ncclGroupEnd() {
  --depth;
  return fails("ncclGroupEnd") ? kInternal : run();
}
int ncclAllGather(const void* part, void* all, std::size_t count, int type, ncclComm* comm, void* /*queue*/) {
  return ask("ncclAllGather",
             {false, comm->rank, comm->num_ranks, static_cast<const float*>(part), static_cast<float*>(all), count},
             type);
}
int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int op, ncclComm* comm, void* /*queue*/) {
  if (op != 0) return kInvalidArgument;
  return ask("ncclAllReduce",
             {true, comm->rank, comm->num_ranks, static_cast<const float*>(from), static_cast<float*>(to), count},
             type);
}
const char* ncclGetErrorString(int result) {
  return result == kSuccess           ? "no error"
         : result == kInvalidUsage    ? "invalid usage"
         : result == kInvalidArgument ? "invalid argument"
                                      : "internal error";
}

}  // extern "C"
