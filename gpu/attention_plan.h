// Which blocks of threads go over which queries and spans in a step: a row has the same bits whatever is decided here.
//   A sequence of few rows, whose spans are many for what they are worth, is cut into parts of one span each, so that
//   one long sequence is work for the whole device; one of many rows is cut into tiles of queries that go over all of
//   their spans.
// Shape   a unit for each tile (and span), of 8 or of up to 32 queries; of more than 32 that go over all their spans,
//         of up to 48 where that is asked for: fewer would find K and V read no less often by it.
//         A draft that is no chain: spans before its root's are gone over by all its rows together, later ones by each
//         node for itself.
//         A sequence whose scores are accumulated is not cut into parts, and has no unit of 48.
// Thread  any; pure.
// Source  ours.
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend/batch.h"
#include "gpu/kernels/attention_units.h"

namespace quire::gpu {

struct AttentionShape {
  std::uint32_t heads_of_group = 1;  // query heads of a kv head
  std::uint32_t window = 0;
  bool has_wide = true;          // units of 32 queries
  std::uint32_t most_parts = 0;  // spans of rows that there is room for

  bool operator==(const AttentionShape&) const = default;
};

struct AttentionPlan {
  std::vector<AttentionUnit> narrow;  // up to 8 queries
  std::vector<AttentionUnit> wide;    // up to 32
  std::vector<AttentionUnit> narrow_accumulating;
  std::vector<AttentionUnit> wide_accumulating;
  std::vector<RowParts> row_parts;           // [T]
  std::vector<std::uint32_t> rows_in_parts;  // those that have any
};

inline constexpr std::uint32_t kMostRowsInParts = 64;  // of a sequence

AttentionPlan plan_attention(const backend::Batch& batch, const AttentionShape& shape);

}  // namespace quire::gpu
