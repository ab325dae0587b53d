// A batch of cache changes as the payload of a KV event message: [timestamp, [event, …], data-parallel rank].
// Shape   stored blocks that stand behind each other are one BlockStored, removed ones in a row one BlockRemoved. A block's
//         hash is a number: its entry's, passed through a one-to-one function that is keyed per process, so that no two
//         blocks of a server ever have the same, and two servers hardly ever. It is never 0.
// Root    who asks under another root than `plain_root` (an API key's tenant, a cache_salt) finds other blocks than everybody
//         else: the first block of such a chain has its root as extra key, 32 hexadecimal digits.
// Thread  any; a pure function.
// Source  vLLM's KVEventBatch: its events are maps since 2026, and were arrays with the type in front.
#pragma once

#include <cstdint>
#include <string>

#include "app/kv_events/kv_events_config.h"
#include "core/base/ids.h"
#include "core/flow/cache_changes.h"

namespace quire::app {

struct PayloadFacts {
  KvEventsConfig::Format format = KvEventsConfig::Format::kMap;
  std::uint32_t block_tokens = 0;
  std::uint64_t hash_key = 0;
  CacheRoot plain_root{};
  std::string medium{};  // where blocks lie: "CPU" or "GPU"
};

std::string event_payload(const flow::CacheChanges& changes, double unix_seconds, const PayloadFacts& facts);

// What an entry's number is called outside.
std::uint64_t block_hash(std::uint64_t entry, std::uint64_t hash_key);

}  // namespace quire::app
