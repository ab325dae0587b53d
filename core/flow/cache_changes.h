// Changes of the prefix cache since the batch before, in order: the engine's message to subscribers of KV events.
// Shape   `tokens` has the P tokens of each stored block, one block after the other, in the order of the changes.
// Source  the idea of vLLM's KV cache events.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"

namespace quire::flow {

struct CacheChange {
  enum class Kind : std::uint8_t { kCleared, kStored, kRemoved };  // cleared: the cache has only what follows
  Kind kind = Kind::kCleared;
  std::uint64_t entry = 0;           // id of the entry in the prefix index, never reused
  std::uint64_t parent = 0;          // kStored: id of its parent entry; 0: the block begins a prompt
  CacheNamespace cache_namespace{};  // kStored
};

struct CacheChanges {
  std::uint64_t number = 0;  // sequence number of the batch, from 0; a number never seen belongs to a lost batch
  std::vector<CacheChange> changes;
  std::vector<TokenId> tokens;
};

}  // namespace quire::flow
