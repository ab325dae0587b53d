// CPU time of the calling thread since its start. Time limits count it instead of wall time, so that a busy machine
// rejects no more work than an idle one.
// Thread  any.
#pragma once

#include <time.h>

#include <chrono>

namespace quire {

inline std::chrono::nanoseconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace quire
