// Attention plan of a step: which thread block goes over which queries and spans (KV splits of 256 positions). The plan
// does not change a row's bits.
//   A sequence of at most kMostRowsInParts rows, of which one sees two or more spans, is split into units of one span
//   each, so that one long sequence keeps the whole device busy; MergeSpans merges their results. The rows of any other
//   sequence are cut into tiles of queries, each of which goes over all of its spans.
// Shape   a unit has up to 8 queries (narrow) or up to 32 (wide).
//         Draft trees: in a split sequence all rows share the units of spans before the root's; from the root's span
//         on, and in a sequence that is not split, every node has units of its own.
//         A sequence whose attention scores are accumulated is not split.
// Thread  any; pure.
// Source  ours; split-KV decoding: Flash-Decoding (Dao et al. 2023).
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend/batch.h"
#include "gpu/kernels/attention_units.h"

namespace quire::gpu {

struct AttentionShape {
  std::uint32_t heads_of_group = 1;  // query heads per kv head
  std::uint32_t window = 0;
  bool has_wide = true;          // units of up to 32 queries may be planned
  std::uint32_t most_parts = 0;  // row-span pairs that the buffer of parts has room for

  bool operator==(const AttentionShape&) const = default;
};

struct AttentionPlan {
  std::vector<AttentionUnit> narrow;  // up to 8 queries
  std::vector<AttentionUnit> wide;    // up to 32
  std::vector<AttentionUnit> narrow_accumulating;
  std::vector<AttentionUnit> wide_accumulating;
  std::vector<RowParts> row_parts;           // [T]
  std::vector<std::uint32_t> rows_in_parts;  // rows whose spans are merged from parts
};

inline constexpr std::uint32_t kMostRowsInParts = 64;  // per sequence

AttentionPlan plan_attention(const backend::Batch& batch, const AttentionShape& shape);

}  // namespace quire::gpu
