#include "gpu/attention_plan.h"

#include <algorithm>

#include "core/backend/tensors.h"
#include "core/base/check.h"
#include "core/base/kv_constants.h"
#include "gpu/kernels/batch_rows.h"

namespace quire::gpu {
namespace {

using backend::SequenceRows;

struct Spans {
  std::uint32_t first = 0;
  std::uint32_t last = ~0u;
};

class Planner {
 public:
  Planner(const backend::Batch& batch, const AttentionShape& shape) : batch_(batch), shape_(shape) {
    plan_.row_parts.resize(batch.num_rows());
  }

  AttentionPlan plan() {
    for (const SequenceRows& sequence : batch_.sequences) {
      if (give_parts(sequence)) {
        cut_into_parts(sequence);
      } else {
        cut_rows(sequence.first_row, sequence.num_plain(), {}, sequence.num_accumulated_scores != 0);
        for_nodes(sequence, [&](std::uint32_t row) { cut_rows(row, 1, {}, false); });
      }
    }
    return std::move(plan_);
  }

 private:
  Spans spans_of(std::uint32_t row) const {
    const std::uint32_t position = batch_.positions[row];
    return {lowest_seen(position, shape_.window) / kSpanTokens, position / kSpanTokens};
  }

  template <typename Body>
  static void for_nodes(const SequenceRows& sequence, const Body& body) {
    for (std::uint32_t i = sequence.num_plain(); i < sequence.num_rows; ++i) body(sequence.first_row + i);
  }

  // Assigns a part to every row and span. False: the sequence is not split, because that has no use or no room.
  bool give_parts(const SequenceRows& sequence) {
    if (sequence.num_rows > kMostRowsInParts || sequence.num_accumulated_scores != 0) return false;
    std::uint32_t count = 0;
    std::uint32_t most = 0;
    for (std::uint32_t row = sequence.first_row; row < sequence.first_row + sequence.num_rows; ++row) {
      const Spans spans = spans_of(row);
      count += spans.last - spans.first + 1;
      most = std::max(most, spans.last - spans.first + 1);
    }
    if (most < 2 || count > shape_.most_parts - num_parts_) return false;
    for (std::uint32_t row = sequence.first_row; row < sequence.first_row + sequence.num_rows; ++row) {
      const Spans spans = spans_of(row);
      plan_.row_parts[row] = {num_parts_, spans.first, spans.last - spans.first + 1};
      num_parts_ += spans.last - spans.first + 1;
      plan_.rows_in_parts.push_back(row);
    }
    return true;
  }

  void cut_into_parts(const SequenceRows& sequence) {
    Spans all{~0u, 0};
    for (std::uint32_t row = sequence.first_row; row < sequence.first_row + sequence.num_rows; ++row) {
      all.first = std::min(all.first, spans_of(row).first);
      all.last = std::max(all.last, spans_of(row).last);
    }
    const std::uint32_t end_of_shared = sequence.num_nodes == 0 ? ~0u : sequence.root_position() / kSpanTokens;
    for (std::uint32_t span = all.first; span <= all.last; ++span) {
      if (span < end_of_shared) {
        cut_rows(sequence.first_row, sequence.num_rows, {span, span}, false);
        continue;
      }
      cut_rows(sequence.first_row, sequence.num_plain(), {span, span}, false);
      for_nodes(sequence, [&](std::uint32_t row) { cut_rows(row, 1, {span, span}, false); });
    }
  }

  // Cuts all queries of the rows into tiles.
  void cut_rows(std::uint32_t first_row, std::uint32_t num_rows, Spans spans, bool accumulated_scores) {
    const std::uint32_t count = num_rows * shape_.heads_of_group;
    for (std::uint32_t query = 0; query < count;) {
      const bool is_wide = shape_.has_wide && count - query > kNarrowQueries;
      const std::uint32_t taken = std::min(count - query, is_wide ? kWideQueries : kNarrowQueries);
      const AttentionUnit unit = unit_of(first_row, query, taken, spans);
      query += taken;
      if (unit.first_span > unit.last_span) continue;  // its rows see other spans only
      (is_wide ? plan_.wide : plan_.narrow).push_back(unit);
      if (accumulated_scores) (is_wide ? plan_.wide_accumulating : plan_.narrow_accumulating).push_back(unit);
    }
  }

  AttentionUnit unit_of(std::uint32_t first_row, std::uint32_t query, std::uint32_t count, Spans spans) const {
    const std::uint32_t heads = shape_.heads_of_group;
    AttentionUnit unit;
    unit.first_row = first_row + query / heads;
    unit.first_head = query % heads;
    unit.num_queries = count;
    unit.min_position = unit.min_lowest = ~0u;
    for (std::uint32_t row = unit.first_row; row <= first_row + (query + count - 1) / heads; ++row) {
      const std::uint32_t position = batch_.positions[row];
      const std::uint32_t lowest = lowest_seen(position, shape_.window);
      unit.min_position = std::min(unit.min_position, position);
      unit.max_position = std::max(unit.max_position, position);
      unit.min_lowest = std::min(unit.min_lowest, lowest);
      unit.max_lowest = std::max(unit.max_lowest, lowest);
    }
    unit.first_span = std::max(spans.first, unit.min_lowest / kSpanTokens);
    unit.last_span = std::min(spans.last, unit.max_position / kSpanTokens);
    return unit;
  }

  const backend::Batch& batch_;
  const AttentionShape& shape_;
  AttentionPlan plan_;
  std::uint32_t num_parts_ = 0;
};

}  // namespace

AttentionPlan plan_attention(const backend::Batch& batch, const AttentionShape& shape) {
  CHECK_GT(shape.heads_of_group, 0u);
  return Planner(batch, shape).plan();
}

}  // namespace quire::gpu
