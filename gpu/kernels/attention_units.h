// What one block of threads attends to: some query rows of a sequence and kv head, over one span of positions or over all of theirs.
//   The query heads of a kv head and the rows of a sequence are one list of queries, (row, head) with the head running fastest: they
//   read the same K and V. A unit has so many of them in the columns of its tiles.
// Shape   whoever is cut into units of single spans has room for each of its spans: its parts, [row's spans][H].
// Thread  host and device; pure.
// Source  ours; fixed-size splits of a long sequence: Flash-Decoding (Dao et al. 2023), Thinking Machines 2025.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire::gpu {

inline constexpr std::uint32_t kNarrowQueries = 8;
inline constexpr std::uint32_t kWideQueries = 32;

struct AttentionUnit {
  std::uint32_t first_row = 0;    // of the batch: the first query's
  std::uint32_t first_head = 0;   // of the kv head's: the first query's
  std::uint32_t num_queries = 0;  // 0: the unit fills up a grid
  std::uint32_t first_span = 0;
  std::uint32_t last_span = 0;
  // Of its rows: what some of them see, and what all of them see.
  std::uint32_t min_position = 0;
  std::uint32_t max_position = 0;
  std::uint32_t min_lowest = 0;
  std::uint32_t max_lowest = 0;
};

// Where a row's spans go before they are merged.
struct RowParts {
  std::uint32_t first_part = 0;
  std::uint32_t first_span = 0;
  std::uint32_t num_spans = 0;  // 0: its units go over all of its spans and merge them themselves

  constexpr bool has(std::uint32_t span) const { return span >= first_span && span - first_span < num_spans; }
  constexpr std::size_t part(std::uint32_t span, std::uint32_t head, std::uint32_t num_heads) const {
    return std::size_t{first_part + (span - first_span)} * num_heads + head;
  }
};

// Of every part: its span's weighted values [D], and its maximum and sum (0: the row sees nothing of the span).
struct PartsView {
  float* values = nullptr;
  float* max_and_sum = nullptr;
};

}  // namespace quire::gpu
