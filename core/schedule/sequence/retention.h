// The positions that a lossy KvPolicy keeps, and those that it keeps of one sequence. The decision is made when a row
// opens a new span of 256 positions, and holds for all rows of that span, so that tokens depend on the policy and not
// on how rows are cut into steps.
// Shape   masks[s], bit g: the 16 positions from 256 s + 16 g are kept. A span's groups can be dropped once the span is
//         complete.
// Owner   Retention: a Sequence, whose request's policy it refers to. The functions are pure.
// Thread  engine.
// Fails   never.
// Source  StreamingLLM (Xiao et al. 2023), H2O (Zhang et al. 2023); deciding by whole spans and groups is ours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/kv_constants.h"
#include "core/base/thread_role.h"
#include "core/flow/request.h"
#include "core/kv/block_table.h"

namespace quire::schedule {

inline constexpr std::uint32_t kSpanGroups = kSpanTokens / kGroupTokens;

// Updates `masks` from spans [0, span - 1) to spans [0, span) when span `span` opens; span - 1 was kept whole so far.
// `accumulated_scores` [16 * span], by group: read for kHeavyHitters only. A dropped group stays dropped.
void retain(const flow::KvPolicy& policy, std::uint32_t span, std::span<const std::uint64_t> accumulated_scores,
            std::vector<std::uint16_t>& masks);

inline bool is_kept(std::span<const std::uint16_t> masks, std::uint32_t group) {
  return group / kSpanGroups >= masks.size() || (masks[group / kSpanGroups] >> group % kSpanGroups & 1) != 0;
}

// The end of the span that the row at `position` lies in.
constexpr std::uint32_t span_end(std::uint32_t position) { return (position / kSpanTokens + 1) * kSpanTokens; }

class Retention {
 public:
  explicit Retention(const flow::KvPolicy& policy) : policy_(policy) {}
  Retention(const Retention&) = delete;
  Retention& operator=(const Retention&) = delete;

  // True if the row at `position`, the sequence's next one, opens a span.
  bool at_new_span(std::uint32_t position) const {
    return policy_.lossy() && position / kSpanTokens > kept_groups_.size();
  }
  // Opens that span: the policy decides which groups of earlier spans stay, and a block of `table` of which nothing
  // stays is given back.
  void open_span(std::uint32_t position, kv::BlockTable& table) REQUIRES(engine_role);
  std::span<const std::uint16_t> kept_groups() const { return kept_groups_; }  // [spans before that of the next row]

  // Adds the attention that the rows of a step paid to each group of 16 positions.
  void add_accumulated_scores(std::span<const std::uint64_t> accumulated_scores) REQUIRES(engine_role);

  // A fork begins with the groups and scores of its parent.
  void share(const Retention& parent) REQUIRES(engine_role);
  // The sequence is recomputed from its first row.
  void clear() REQUIRES(engine_role);

 private:
  const flow::KvPolicy& policy_;
  std::vector<std::uint16_t> kept_groups_;
  std::vector<std::uint64_t> accumulated_scores_;  // by group
};

}  // namespace quire::schedule
