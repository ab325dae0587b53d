#include "core/speculate/models/sparse_context.h"

#include <algorithm>

#include "core/base/kv_constants.h"
#include "core/flow/step_plan.h"

namespace quire::speculate {

std::uint32_t widest_window(const std::vector<std::uint32_t>& windows) {
  std::uint32_t widest = 0;
  for (const std::uint32_t window : windows) {
    if (window == 0) return 0;
    widest = std::max(widest, window);
  }
  return widest;
}

bool avoids_dropped_blocks(std::span<const BlockId> table, std::uint32_t block_tokens, std::uint32_t first_position,
                           std::uint32_t window, const SparseContext& context) {
  for (std::uint32_t i = 0; i < table.size() && i * block_tokens <= first_position; ++i) {
    if (table[i] != kNoBlock) continue;
    const std::uint32_t end = (i + 1) * block_tokens;
    if (window != 0 && end + window <= first_position + 1) continue;
    const bool in_own_span = end > first_position / kSpanTokens * kSpanTokens;
    bool seen = context.sees_all() || in_own_span;
    for (std::uint32_t group = i * block_tokens; group < end && !seen; group += kGroupTokens) {
      seen = context.sees(group, first_position);
    }
    if (seen) return false;
  }
  return true;
}

}  // namespace quire::speculate
