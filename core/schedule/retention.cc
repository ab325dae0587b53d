#include "core/schedule/retention.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::schedule {

void retain(const flow::KvPolicy& policy, std::uint32_t span, std::span<const std::uint64_t> accumulated_scores,
            std::vector<std::uint16_t>& masks) {
  CHECK(policy.kind != flow::KvPolicy::Kind::kFull);
  CHECK_EQ(masks.size() + 1, std::size_t{span});
  masks.push_back(0xffff);
  const std::uint32_t num_groups = span * kSpanGroups;
  const std::uint32_t sinks = policy.sinks / kGroupTokens;
  const std::uint32_t window = std::min(policy.window / kGroupTokens, num_groups);
  const std::uint32_t first_recent = num_groups - window;

  // Neither sink nor recent, and still there.
  std::vector<std::uint32_t> old;
  for (std::uint32_t group = sinks; group < first_recent; ++group) {
    if (is_kept(masks, group)) old.push_back(group);
  }
  std::size_t num_stay = 0;
  if (policy.kind == flow::KvPolicy::Kind::kHeavyHitters) {
    CHECK_EQ(accumulated_scores.size(), std::size_t{num_groups});
    num_stay = std::min<std::size_t>(policy.budget / kGroupTokens, old.size());
    // The most looked at first; of equals the older.
    std::ranges::stable_sort(
        old, [&](std::uint32_t a, std::uint32_t b) { return accumulated_scores[a] > accumulated_scores[b]; });
  }
  for (std::size_t i = num_stay; i < old.size(); ++i) {
    masks[old[i] / kSpanGroups] &= static_cast<std::uint16_t>(~(1u << old[i] % kSpanGroups));
  }
}

}  // namespace quire::schedule
