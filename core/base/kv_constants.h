// Sizes of the KV cache that several layers share, and the id that stands for no block.
// Thread  any; constants.
#pragma once

#include <cstdint>

#include "core/base/ids.h"

namespace quire {

// A KV split: positions that attention reduces as one unit. Results depend on it, so it never changes with load.
inline constexpr std::uint32_t kSpanTokens = 256;
// Positions that are quantised, kept or dropped together.
inline constexpr std::uint32_t kGroupTokens = 16;
// The entry of a block table that holds no block: its positions were dropped.
inline constexpr BlockId kNoBlock{~0u};

}  // namespace quire
