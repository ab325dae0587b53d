// One group of a model's layers, which keep K and V of the same positions: all positions, a sliding window, or a chunk.
//   the row at position p attends to [first_needed(p), p]
//   kFull    all positions                     first_needed(p) = 0
//   kWindow  the last `tokens`, its own too    first_needed(p) = max(0, p - tokens + 1)
//   kChunk   those of its chunk of `tokens`    first_needed(p) = floor(p / tokens) * tokens
// Shape   a sequence has a block table for each group; a block holds the K and V of one group's layers for P tokens.
//         The first group is a full one if there is any. Windows have two tokens or more, and not all groups are
//         chunks: a row behind one that is not finite is not finite either, which PrefixCursor relies on.
// Thread  any; values.
// Fails   never. first_needed() never decreases, which PrefixIndex relies on.
// Source  ours. vLLM's hybrid cache manager has such groups, too. A layer with a state instead of K and V would be a
//         further kind: valid at exactly one position.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/kv/layout.h"

namespace quire::kv {

struct CacheGroup {
  enum class Kind : std::uint8_t { kFull, kWindow, kChunk };
  Kind kind = Kind::kFull;
  std::uint32_t tokens = 0;  // >= 1, unless kFull

  constexpr bool full() const { return kind == Kind::kFull; }
  // The first position whose K and V the row at `position` reads.
  constexpr std::uint32_t first_needed(std::uint32_t position) const {
    if (kind == Kind::kWindow) return position - std::min(position, tokens - 1);
    return kind == Kind::kChunk ? position - position % tokens : 0;
  }
  // Number of first positions for which a sequence that has computed `next_position` of `num_tokens` tokens reserves
  // blocks: in a group that is not full those of its first `tokens` and a step of `step_tokens` rows, then those of the
  // next step. What it gives back behind its window pays for the steps after that.
  constexpr std::uint32_t reserved_tokens(std::uint32_t num_tokens, std::uint32_t next_position,
                                          std::uint32_t step_tokens) const {
    const std::uint64_t reach = std::uint64_t{std::max(next_position, tokens)} + step_tokens;
    return full() ? num_tokens : static_cast<std::uint32_t>(std::min<std::uint64_t>(num_tokens, reach));
  }
  // Most blocks that a sequence of `num_tokens` tokens holds at a time, if a step has at most `step_tokens` rows of it
  // and may have to begin again at a multiple of `align` tokens.
  constexpr std::uint32_t most_blocks(std::uint32_t num_tokens, std::uint32_t step_tokens, std::uint32_t align,
                                      std::uint32_t block_tokens) const {
    const std::uint32_t all = blocks_for(num_tokens, block_tokens);
    if (full()) return all;
    const std::uint64_t seen = std::uint64_t{tokens} + align + step_tokens;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(all, (seen + block_tokens - 1) / block_tokens + 1));
  }
  friend constexpr bool operator==(const CacheGroup&, const CacheGroup&) = default;
};

// True if all groups keep all positions.
constexpr bool all_full(std::span<const CacheGroup> groups) { return std::ranges::all_of(groups, &CacheGroup::full); }

}  // namespace quire::kv
