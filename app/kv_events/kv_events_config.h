// --kv-events-config: whether and where prefix-cache events are published.
// Shape   JSON with vLLM's keys and defaults, and `format`, which is ours.
// Thread  any; pure functions.
// Fails   kInvalidArgument with the key: an unknown key, or a value out of range.
// Source  vLLM's KVEventsConfig. Its `topic` is empty by default; ours is the one that llm-d's router expects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace quire::app {

struct KvEventsConfig {
  enum class Format : std::uint8_t { kMap, kArray };

  bool enabled = false;  // enable_kv_cache_events, and a publisher that is not "null"
  std::string endpoint = "tcp://*:5557";
  std::string replay_endpoint{};        // empty: missed batches cannot be requested again
  std::optional<std::string> topic{};   // none: kv@HOST:PORT@MODEL
  std::uint32_t buffer_steps = 10'000;  // batches stored for replays
  std::uint32_t hwm = 100'000;  // batches queued for a subscriber that does not read (high-water mark of ZeroMQ)
  std::uint32_t max_queue_size = 100'000;  // batches queued for the publisher thread
  Format format = Format::kMap;
};

// An empty `text` leaves events disabled.
Result<KvEventsConfig> parse_kv_events_config(std::string_view text);

}  // namespace quire::app
