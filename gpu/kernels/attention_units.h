// Work of one thread block in attention: some query rows of a sequence and kv head, over one span of positions or over
// all of their spans.
//   The queries of a sequence and kv head are pairs (row, head), head fastest, that read the same K and V. A unit has
//   some of them as the columns of its tiles.
// Shape   a row whose units are of one span each has a part for each of its spans: [row's spans][H].
// Thread  host and device; pure.
// Source  ours; fixed-size splits of a long sequence: Flash-Decoding (Dao et al. 2023), Thinking Machines 2025.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire::gpu {

inline constexpr std::uint32_t kNarrowQueries = 8;
inline constexpr std::uint32_t kWideQueries = 32;

struct AttentionUnit {
  std::uint32_t first_row = 0;    // row of the first query, in the batch
  std::uint32_t first_head = 0;   // its head, within the kv head
  std::uint32_t num_queries = 0;  // 0: padding of a grid
  std::uint32_t first_span = 0;
  std::uint32_t last_span = 0;
  // Range of positions that some of its rows see: [min_lowest, max_position]; that all see: [max_lowest, min_position].
  std::uint32_t min_position = 0;
  std::uint32_t max_position = 0;
  std::uint32_t min_lowest = 0;
  std::uint32_t max_lowest = 0;
};

// Parts that a row's spans are written to before they are merged.
struct RowParts {
  std::uint32_t first_part = 0;
  std::uint32_t first_span = 0;
  std::uint32_t num_spans = 0;  // 0: its units go over all of its spans and merge them themselves

  constexpr bool has(std::uint32_t span) const { return span >= first_span && span - first_span < num_spans; }
  constexpr std::size_t part(std::uint32_t span, std::uint32_t head, std::uint32_t num_heads) const {
    return std::size_t{first_part + (span - first_span)} * num_heads + head;
  }
};

// All parts. Each is a span's weighted values [D], and its maximum and sum (sum 0: the row sees nothing of the span).
struct PartsView {
  float* values = nullptr;
  float* max_and_sum = nullptr;
};

}  // namespace quire::gpu
