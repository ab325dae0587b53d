// What of a long context a drafting row looks at: the first positions and the most recent ones, in groups of 16, positions as
// they are. A row sees all of its own span of 256 besides: the window is where a row at the span's begin sees it, and wider
// behind. So what is read does not grow with the context, and nothing is copied.
// Shape   words as in core/backend/batch.h: bit g of word s is the group from position 256 s + 16 g on.
// Thread  any; pure.
// Source  StreamingLLM (Xiao et al. 2023), as MagicDec (Sadhukhan et al. 2024) drafts; groups and true positions are ours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/tensors.h"
#include "core/base/ids.h"

namespace quire::speculate {

struct SparseContext {
  std::uint32_t sinks = 0;
  std::uint32_t window = 0;  // 0: everything is seen

  bool sees_all() const { return window == 0; }
  // Of the group from `begin` on, a multiple of 16, in a span before that of the row.
  bool sees(std::uint32_t begin, std::uint32_t row_position) const {
    return begin == 0 || begin < sinks || begin + backend::kGroupTokens + window > row_position + 1;
  }
  std::uint16_t word(std::uint32_t span, std::uint32_t row_position) const {
    std::uint32_t bits = 0;
    for (std::uint32_t g = 0; g < backend::kSpanTokens / backend::kGroupTokens; ++g) {
      if (sees(span * backend::kSpanTokens + g * backend::kGroupTokens, row_position)) bits |= 1u << g;
    }
    return static_cast<std::uint16_t>(bits);
  }
  // Whether two rows look at the same groups before their span.
  bool same_view(std::uint32_t row_position, std::uint32_t other) const {
    const std::uint32_t spans = other / backend::kSpanTokens;
    if (row_position / backend::kSpanTokens != spans) return false;
    for (std::uint32_t span = 0; span < spans; ++span) {
      if (word(span, row_position) != word(span, other)) return false;
    }
    return true;
  }
};

// The positions that some layer sees, of all layers' windows; 0: all.
std::uint32_t widest_window(const std::vector<std::uint32_t>& windows);

// Whether rows from that position on look at no block that was dropped from the table.
bool misses_dropped(std::span<const BlockId> table, std::uint32_t block_tokens, std::uint32_t first_position,
                    std::uint32_t window, const SparseContext& context);

}  // namespace quire::speculate
