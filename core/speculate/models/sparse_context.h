// Sparse attention of a drafting row over a long context: the first and the most recent positions, in groups of 16, at
// their true positions. A row also attends to all earlier positions of its own span of 256, so late in a span it may
// see more than the window. The positions read do not grow with the context, and nothing is copied.
// Shape   words as in core/backend/batch.h: bit g of word s is the group of positions from 256 s + 16 g on.
// Thread  any; pure.
// Source  StreamingLLM (Xiao et al. 2023), used for drafts as in MagicDec (Sadhukhan et al. 2024). Ours: groups, and
//         true positions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/tensors.h"
#include "core/base/ids.h"
#include "core/base/kv_constants.h"

namespace quire::speculate {

struct SparseContext {
  std::uint32_t sinks = 0;
  std::uint32_t window = 0;  // 0: all positions are attended to

  bool sees_all() const { return window == 0; }
  // True if the row attends to the group at `begin`, a multiple of 16 in a span before the row's.
  bool sees(std::uint32_t begin, std::uint32_t row_position) const {
    return begin == 0 || begin < sinks || begin + kGroupTokens + window > row_position + 1;
  }
  std::uint16_t word(std::uint32_t span, std::uint32_t row_position) const {
    std::uint32_t bits = 0;
    for (std::uint32_t g = 0; g < kSpanTokens / kGroupTokens; ++g) {
      if (sees(span * kSpanTokens + g * kGroupTokens, row_position)) bits |= 1u << g;
    }
    return static_cast<std::uint16_t>(bits);
  }
  // True if two rows attend to the same groups before their span.
  bool same_view(std::uint32_t row_position, std::uint32_t other) const {
    const std::uint32_t spans = other / kSpanTokens;
    if (row_position / kSpanTokens != spans) return false;
    for (std::uint32_t span = 0; span < spans; ++span) {
      if (word(span, row_position) != word(span, other)) return false;
    }
    return true;
  }
};

// Largest attention window of all layers; 0: a layer without a limit.
std::uint32_t widest_window(const std::vector<std::uint32_t>& windows);

// True if no row from first_position on attends to a block that was dropped from the table.
bool avoids_dropped_blocks(std::span<const BlockId> table, std::uint32_t block_tokens, std::uint32_t first_position,
                           std::uint32_t window, const SparseContext& context);

}  // namespace quire::speculate
