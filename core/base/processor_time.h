// The time that this thread has had of a processor, ever. Limits of time count it, so that a busy machine refuses
// nothing else.
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
