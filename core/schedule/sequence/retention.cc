#include "core/schedule/sequence/retention.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/kv_constants.h"

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

  // Groups that are neither sinks nor in the window, and not dropped yet.
  std::vector<std::uint32_t> old;
  for (std::uint32_t group = sinks; group < first_recent; ++group) {
    if (is_kept(masks, group)) old.push_back(group);
  }
  std::size_t num_stay = 0;
  if (policy.kind == flow::KvPolicy::Kind::kHeavyHitters) {
    CHECK_EQ(accumulated_scores.size(), std::size_t{num_groups});
    num_stay = std::min<std::size_t>(policy.budget / kGroupTokens, old.size());
    // Most attention first; of equals the older group.
    std::ranges::stable_sort(
        old, [&](std::uint32_t a, std::uint32_t b) { return accumulated_scores[a] > accumulated_scores[b]; });
  }
  for (std::size_t i = num_stay; i < old.size(); ++i) {
    masks[old[i] / kSpanGroups] &= static_cast<std::uint16_t>(~(1u << old[i] % kSpanGroups));
  }
}

void Retention::open_span(std::uint32_t position, kv::BlockTable& table) {
  const std::uint32_t span = position / kSpanTokens;
  retain(policy_, span, accumulated_scores_, kept_groups_);
  const std::uint32_t block_tokens = table.block_tokens();
  for (std::uint32_t block = 0; (block + 1) * block_tokens <= span * kSpanTokens; ++block) {
    bool stays = false;
    const std::uint32_t last = ((block + 1) * block_tokens - 1) / kGroupTokens;
    for (std::uint32_t group = block * block_tokens / kGroupTokens; group <= last; ++group) {
      stays = stays || is_kept(kept_groups_, group);
    }
    if (!stays) table.drop_row(block);
  }
}

void Retention::add_accumulated_scores(std::span<const std::uint64_t> accumulated_scores) {
  if (accumulated_scores_.size() < accumulated_scores.size()) accumulated_scores_.resize(accumulated_scores.size());
  for (std::size_t group = 0; group < accumulated_scores.size(); ++group)
    accumulated_scores_[group] += accumulated_scores[group];
}

void Retention::share(const Retention& parent) {
  kept_groups_ = parent.kept_groups_;
  accumulated_scores_ = parent.accumulated_scores_;
}

void Retention::clear() {
  kept_groups_.clear();
  accumulated_scores_.clear();
}

}  // namespace quire::schedule
