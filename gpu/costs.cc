#include "gpu/costs.h"

#include <algorithm>

#include "core/base/kv_constants.h"
#include "gpu/kernels/batch_rows.h"
#include "gpu/kernels/linear_dot.h"

namespace quire::gpu {
namespace {

using backend::Format;
using backend::SequenceRows;

constexpr double kFloat = sizeof(float);
constexpr double kNormFlops = 4.0;  // per number: square, sum, two factors

// Bytes of one row as the tensor cores read it.
double prepared_bytes(Format format, std::uint32_t k) {
  const double numbers = 1.0 * num_steps(k) * kStepInputs;
  return has_row_scales(format) ? numbers + kFloat * num_slices(k) : 2 * numbers;
}

constexpr std::uint32_t kSpanGroups = kSpanTokens / kGroupTokens;

// Kept positions of a span that lie within [first, last], and the groups that have any of them.
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

double least_seconds(const Cost& cost, const Rates& rates) {
  return std::max(cost.bytes / rates.bytes_per_s, cost.flops / rates.flops_per_s) + rates.launch_s;
}

Cost linear_cost(Format format, std::uint32_t n, std::uint32_t k, std::uint32_t rows, Finish finish) {
  if (rows == 0) return {};
  Cost cost;
  cost.flops = 2.0 * n * k * rows;
  const double results = kFloat * n * rows * (finish == Finish::kAdd ? 2.0 : finish == Finish::kGate ? 0.5 : 1.0);
  const auto weights = static_cast<double>(number_bytes(format, n, k));
  if (!by_tensor_cores(format)) {  // each block of rows reads all weights, each block of outputs all rows
    cost.bytes =
        weights * pieces_of(rows, LinearDot::kRows) + kFloat * k * rows * pieces_of(n, LinearDot::kThreads) + results;
    return cost;
  }
  cost.bytes = weights + (has_output_scales(format) ? kFloat * n : 0.0) + prepared_bytes(format, k) * rows + results;
  return cost;
}

Cost linear_rows_cost(Format format, std::uint32_t k, std::uint32_t rows, bool with_norm) {
  if (!by_tensor_cores(format)) return {};
  Cost cost;
  cost.bytes = (kFloat * k + prepared_bytes(format, k)) * rows + (with_norm ? kFloat * k : 0.0);
  cost.flops = 1.0 * k * rows * ((with_norm ? kNormFlops : 0.0) + (in_integers(format) ? 3.0 : 1.0));
  return cost;
}

Cost norm_cost(std::uint32_t width, std::uint32_t rows) {
  if (rows == 0) return {};
  return {kFloat * width * (2.0 * rows + 1), kNormFlops * width * rows};
}

Cost act_mul_cost(std::uint32_t width, std::uint32_t rows) {
  return {3 * kFloat * width * rows, 3.0 * width * rows};  // the exponential counts as one
}

Cost attention_cost(const backend::Batch& batch, const KvLayout& layout, std::uint32_t num_heads,
                    std::uint32_t window) {
  Cost cost;
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
    cost.bytes += 2.0 * sequence.num_rows * num_heads * layout.head_dim * kFloat;
  }
  return cost;
}

double unit_bytes(const backend::Batch& batch, const AttentionPlan& plan, const KvLayout& layout,
                  std::uint32_t num_heads) {
  double bytes = 0;
  const double group_bytes = static_cast<double>(layout.group_bytes()) * layout.num_kv_heads;
  for (const auto* units : {&plan.narrow, &plan.wide}) {
    for (const AttentionUnit& unit : *units) {
      const SequenceRows& sequence = sequence_of(batch, unit.first_row);
      for (std::uint32_t span = unit.first_span; span <= unit.last_span; ++span) {
        bytes += seen_in(batch, sequence, span, unit.min_lowest, unit.max_position).groups * group_bytes;
      }
    }
  }
  for (const std::uint32_t row : plan.rows_in_parts) {
    bytes += 2.0 * plan.row_parts[row].num_spans * num_heads * (layout.head_dim + 2) * kFloat;
  }
  return bytes;
}

}  // namespace quire::gpu
