// Arithmetic of blocks and slots: the place of a token's K and V in the cache.
//   block of position p: p / P     slot: block id * P + p mod P     blocks for n tokens: ceil(n / P)
// Shape   P tokens per block.
// Thread  any.
// Source  PagedAttention (Kwon et al. 2023), section 4.3.
#pragma once

#include <cstdint>

#include "core/base/ids.h"
#include "core/base/kv_constants.h"

namespace quire::kv {

constexpr std::uint32_t blocks_for(std::uint32_t num_tokens, std::uint32_t block_tokens) {
  return num_tokens / block_tokens + (num_tokens % block_tokens != 0 ? 1 : 0);
}

constexpr std::uint32_t slot_of(BlockId block, std::uint32_t position, std::uint32_t block_tokens) {
  return block.value * block_tokens + position % block_tokens;
}

}  // namespace quire::kv
