#include "tools/scenario/dry_runner.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::tools {

void DryRunner::submit(const flow::StepPlan& plan) {
  CHECK(!in_flight_);
  in_flight_ = true;
  held_blocks_ = pool_.num_held();
  choices_.clear();
  for (const flow::PlannedSequence& planned : plan.sequences) {
    const auto [at, is_new] = seen_.try_emplace(planned.seq);
    Seen& seen = at->second;
    if (is_new) seen.first_step = step_;
    const std::uint32_t length = planned.first_position + planned.num_rows;
    seen.num_rows += planned.num_rows;
    if (planned.first_position < seen.furthest) {
      seen.num_recomputed += std::min(length, seen.furthest) - planned.first_position;
    }
    seen.furthest = std::max(seen.furthest, length);
    stored_tokens_ += length;
    stored_tokens_ -= seen.stored;
    seen.stored = length;
    // Any token would do. Two sequences rarely get the same ones, so answers are not found in the prefix cache.
    const std::uint64_t token = (planned.seq.value * 7919 + length * std::uint64_t{104729}) % vocab_;
    if (planned.samples) choices_.push_back({{.token = static_cast<TokenId>(token)}, planned.seq});
  }
}

std::span<const flow::StepChoice> DryRunner::collect() {
  CHECK(in_flight_);
  in_flight_ = false;
  return choices_;
}

void DryRunner::forget(SeqId seq) {
  const auto at = seen_.find(seq);
  if (at == seen_.end()) return;  // it never ran
  stored_tokens_ -= at->second.stored;
  at->second.stored = 0;
}

}  // namespace quire::tools
