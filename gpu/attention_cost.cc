#include "gpu/attention_cost.h"

#include <algorithm>
#include <bit>

#include "gpu/kernels/batch_rows.h"

namespace quire::gpu {
namespace {

using backend::kGroupTokens;
using backend::kSpanTokens;
using backend::SequenceRows;

constexpr std::uint32_t kSpanGroups = kSpanTokens / kGroupTokens;

// Positions of a span that are there and lie within [first, last], or groups that have some of these.
struct Seen {
  std::uint32_t positions = 0;
  std::uint32_t groups = 0;
};
Seen seen_in(const backend::Batch& batch, const SequenceRows& sequence, std::uint32_t span, std::uint32_t first,
             std::uint32_t last) {
  Seen seen;
  const std::uint32_t kept = span < sequence.num_kept ? batch.kept_groups[sequence.first_kept + span] : 0xffffu;
  for (std::uint32_t group = 0; group < kSpanGroups; ++group) {
    const std::uint32_t start = span * kSpanTokens + group * kGroupTokens;
    const std::uint32_t from = std::max(start, first);
    const std::uint32_t to = std::min(start + kGroupTokens, last + 1);
    if ((kept >> group & 1u) == 0 || from >= to) continue;
    seen.positions += to - from;
    ++seen.groups;
  }
  return seen;
}

const SequenceRows& sequence_of(const backend::Batch& batch, std::uint32_t row) {
  return *std::ranges::find_if(
      batch.sequences, [&](const SequenceRows& s) { return row >= s.first_row && row < s.first_row + s.num_rows; });
}

}  // namespace

AttentionCost attention_cost(const backend::Batch& batch, const AttentionPlan& plan, const KvLayout& layout,
                             std::uint32_t num_heads, std::uint32_t window) {
  AttentionCost cost;
  const double group_bytes = static_cast<double>(layout.group_bytes()) * layout.num_kv_heads;
  for (const SequenceRows& sequence : batch.sequences) {
    std::uint32_t lowest = ~0u;
    std::uint32_t highest = 0;
    for (std::uint32_t row = sequence.first_row; row < sequence.first_row + sequence.num_rows; ++row) {
      const std::uint32_t position = batch.positions[row];
      const std::uint32_t first = lowest_seen(position, window);
      lowest = std::min(lowest, first);
      highest = std::max(highest, position);
      for (std::uint32_t span = first / kSpanTokens; span <= position / kSpanTokens; ++span) {
        cost.flops += 4.0 * layout.head_dim * num_heads * seen_in(batch, sequence, span, first, position).positions;
      }
    }
    for (std::uint32_t span = lowest / kSpanTokens; span <= highest / kSpanTokens; ++span) {
      cost.bytes += seen_in(batch, sequence, span, lowest, highest).groups * group_bytes;
    }
    cost.bytes += 2.0 * sequence.num_rows * num_heads * layout.head_dim * sizeof(float);
  }
  for (const auto* units : {&plan.narrow, &plan.wide}) {
    for (const AttentionUnit& unit : *units) {
      const SequenceRows& sequence = sequence_of(batch, unit.first_row);
      for (std::uint32_t span = unit.first_span; span <= unit.last_span; ++span) {
        cost.unit_bytes += seen_in(batch, sequence, span, unit.min_lowest, unit.max_position).groups * group_bytes;
      }
    }
  }
  for (const std::uint32_t row : plan.rows_in_parts) {
    cost.unit_bytes += 2.0 * plan.row_parts[row].num_spans * num_heads * (layout.head_dim + 2) * sizeof(float);
  }
  return cost;
}

}  // namespace quire::gpu
