// What a lossy KvPolicy keeps: decided when a row opens a new span of 256 positions, for all rows of that span alike,
// so that the tokens depend on the policy and on nothing else.
// Shape   masks[s], bit g: the 16 positions from 256 s + 16 g are kept. A span's groups are candidates once the span is
//         done.
// Thread  engine; pure.
// Source  StreamingLLM (Xiao et al. 2023), H2O (Zhang et al. 2023); deciding by whole spans and groups is ours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/flow/request.h"

namespace quire::schedule {

inline constexpr std::uint32_t kSpanTokens = 256;
inline constexpr std::uint32_t kGroupTokens = 16;
inline constexpr std::uint32_t kSpanGroups = kSpanTokens / kGroupTokens;

// The masks of spans [0, span) when span `span` opens, from those of before (one fewer; span - 1 is whole until now).
// `accumulated_scores` [16 * span], by group: read by kHeavyHitters alone. What was dropped stays dropped.
void retain(const flow::KvPolicy& policy, std::uint32_t span, std::span<const std::uint64_t> accumulated_scores,
            std::vector<std::uint16_t>& masks);

inline bool is_kept(std::span<const std::uint16_t> masks, std::uint32_t group) {
  return group / kSpanGroups >= masks.size() || (masks[group / kSpanGroups] >> group % kSpanGroups & 1) != 0;
}

}  // namespace quire::schedule
