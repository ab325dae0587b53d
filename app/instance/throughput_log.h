// A line of the log at regular intervals while there are requests: tokens per second, queue, cache, drafts.
// Owner   the command; borrows the metrics.
// Thread  its own writes the lines; the destructor ends it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/observe/metrics.h"

namespace quire::app {

// Counters since the start, gauges of the moment.
struct ThroughputSample {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::uint64_t tokens_queried = 0;  // in the prefix cache
  std::uint64_t tokens_found = 0;
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
  double running = 0;
  double waiting = 0;
  double kv_cache_usage = 0;  // 0..1
};
ThroughputSample sample_of(const observe::Metrics& metrics);

// The fields of a line; nullopt: nothing happened between the samples, and nothing runs or waits.
std::optional<LogFields> throughput_fields(const ThroughputSample& before, const ThroughputSample& now, Duration took);

class ThroughputLog {
 public:
  ThroughputLog(const observe::Metrics& metrics, Duration interval);  // > 0
  ~ThroughputLog();
  ThroughputLog(const ThroughputLog&) = delete;
  ThroughputLog& operator=(const ThroughputLog&) = delete;

 private:
  void run();

  const observe::Metrics& metrics_;
  const Duration interval_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;  // under the mutex
  std::thread thread_;      // last member: it uses all of the above
};

}  // namespace quire::app
