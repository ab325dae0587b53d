// What became of the prefix cache since the batch before, in order: the engine's word to whoever follows it from
// outside.
// Shape   `tokens` has the P tokens of each stored block, one block behind the other, in the order of the changes.
// Source  the events of vLLM's KV cache, as an idea.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"

namespace quire::flow {

struct CacheChange {
  enum class Kind : std::uint8_t { kCleared, kStored, kRemoved };  // cleared: there is nothing but what follows
  Kind kind = Kind::kCleared;
  std::uint64_t entry = 0;   // its number in the prefix index, never reused
  std::uint64_t parent = 0;  // of a stored one: what it stands behind; 0: it begins a prompt
  CacheRoot root{};          // of a stored one
};

struct CacheChanges {
  std::uint64_t number = 0;  // counts the batches from 0: one that is missing is lost
  std::vector<CacheChange> changes;
  std::vector<TokenId> tokens;
};

}  // namespace quire::flow
