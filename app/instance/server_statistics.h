// Figures on the KV cache from a running server's /metrics.
// Shape   counters since the server started, gauges at the time of the request. A missing series is 0.
// Owner   a value.
// Thread  any; pure.
// Fails   empty if the text has no quire:build_info: it is not from a quire server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quire::app {

struct ServerStatistics {
  std::string model;
  std::string version;
  std::uint64_t block_tokens = 0;
  std::uint64_t running = 0;
  std::uint64_t waiting = 0;
  std::uint64_t blocks_empty = 0;
  std::uint64_t blocks_kept = 0;
  std::uint64_t blocks_held = 0;
  std::uint64_t blocks_pinned = 0;
  std::uint64_t blocks_saved = 0;  // by sharing blocks
  std::uint64_t block_hits = 0;
  std::uint64_t block_misses = 0;
  std::uint64_t blocks_freed = 0;
  std::uint64_t block_evictions = 0;
  std::uint64_t block_copies = 0;
  std::uint64_t tokens_queried = 0;
  std::uint64_t tokens_found = 0;
  std::uint64_t preempted_by_recompute = 0;
  std::uint64_t preempted_by_swap = 0;
  std::uint64_t overtakes = 0;
};

std::optional<ServerStatistics> read_statistics(std::string_view metrics);

std::string statistics_text(const ServerStatistics& seen);
std::string statistics_json(const ServerStatistics& seen);

}  // namespace quire::app
