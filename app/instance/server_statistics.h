// Figures on the KV cache from a running server's /metrics.
// Shape   counters since the server started, gauges at the time of the request. A missing series is 0.
// Owner   a value.
// Thread  any; pure.
// Fails   empty if the text has no quire:build_info: it is not from a quire server.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quire::app {

struct ServerStatistics {
  std::string model;
  std::string version;
  double block_tokens = 0;
  double running = 0;
  double waiting = 0;
  double blocks_empty = 0;
  double blocks_kept = 0;
  double blocks_held = 0;
  double blocks_pinned = 0;
  double blocks_saved = 0;  // by sharing blocks
  double block_hits = 0;
  double block_misses = 0;
  double blocks_freed = 0;
  double block_evictions = 0;
  double block_copies = 0;
  double tokens_queried = 0;
  double tokens_found = 0;
  double preempted_by_recompute = 0;
  double preempted_by_swap = 0;
  double overtakes = 0;
};

std::optional<ServerStatistics> read_statistics(std::string_view metrics);

std::string statistics_text(const ServerStatistics& seen);
std::string statistics_json(const ServerStatistics& seen);

}  // namespace quire::app
