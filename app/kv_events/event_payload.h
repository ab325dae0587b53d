// Payload of a KV event message from a batch of prefix-cache changes: [timestamp, [event, …], data-parallel rank].
// Shape   consecutive stored blocks, each the child of the one before, form one BlockStored; consecutive removed blocks
//         form one BlockRemoved. A block's hash is its entry's id, mapped by a bijection with a random key per process:
//         unique within a server, almost never equal between two servers, and never 0.
// Salt    requests in a namespace other than `plain_namespace` (an API key's tenant, a cache_salt) share no
//         blocks with the others: the first block of such a chain has the namespace as extra key, 32 hexadecimal
//         digits.
// Thread  any; a pure function.
// Source  vLLM's KVEventBatch. Its events are maps since 2026; before, they were arrays with the type first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/kv_events/kv_events_config.h"
#include "core/base/ids.h"
#include "core/flow/cache_changes.h"

namespace quire::app {

struct PayloadFacts {
  KvEventsConfig::Format format = KvEventsConfig::Format::kMap;
  std::uint32_t block_tokens = 0;
  std::uint64_t hash_key = 0;
  CacheNamespace plain_namespace{};
  std::string medium{};  // device of the blocks: "CPU" or "GPU"
};

// "CPU" or "GPU", by the backend that a numeric mode names (core/model/run/numeric_mode.h).
std::string medium_of(std::string_view numeric_mode);

std::string event_payload(const flow::CacheChanges& changes, double unix_seconds, const PayloadFacts& facts);

// The published hash of the entry with this id.
std::uint64_t block_hash(std::uint64_t entry, std::uint64_t hash_key);

}  // namespace quire::app
