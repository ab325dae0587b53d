// What --kv-events-config says: whether and where it is told what becomes of the prefix cache.
// Shape   JSON with vLLM's keys and defaults, and `format`, which is ours.
// Thread  any; pure functions.
// Fails   kInvalidArgument naming the key: one that nobody knows, or a value out of range.
// Source  vLLM's KVEventsConfig. Its `topic` is empty by default; ours is what llm-d's router expects.
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
  std::string replay_endpoint{};           // empty: nobody can ask for what was missed
  std::optional<std::string> topic{};      // none: kv@HOST:PORT@MODEL
  std::uint32_t buffer_steps = 10'000;     // batches kept for replays
  std::uint32_t hwm = 100'000;             // batches that may wait for a subscriber that does not read
  std::uint32_t max_queue_size = 100'000;  // batches that may wait for the publisher
  Format format = Format::kMap;
};

// Nothing of it is enabled where `text` is empty.
Result<KvEventsConfig> parse_kv_events_config(std::string_view text);

}  // namespace quire::app
