// Device time of calls that follow each other without a pause; and the wall-clock time since a stage began.
// Thread  the engine's.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/base/check.h"
#include "gpu/runtime/device.h"

namespace quire::gpu::measure {

inline double median(std::vector<double> values) {
  CHECK(!values.empty());
  std::ranges::sort(values);
  return values[values.size() / 2];
}
inline double percentile(std::vector<double> values, double of_hundred) {
  CHECK(!values.empty());
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(of_hundred / 100 * static_cast<double>(values.size() - 1))];
}

// Seconds per call: the median of `runs` batches of `calls`. `call` gets its number, so that it can use other memory
// each time and caches stay cold.
template <typename Call>
double seconds_of(Device& device, unsigned runs, unsigned calls, const Call& call) {
  call(0u);
  std::vector<double> seconds;
  for (unsigned run = 0; run < runs; ++run) {
    device.mark(0);
    for (unsigned i = 0; i < calls; ++i) call(run * calls + i);
    device.mark(1);
    seconds.push_back(device.seconds_between(0, 1) / calls);
  }
  return median(seconds);
}

class Deadline {
 public:
  explicit Deadline(double seconds) : seconds_(seconds) {}
  double passed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count(); }
  bool over() const { return passed() > seconds_; }

 private:
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  double seconds_;
};

}  // namespace quire::gpu::measure
