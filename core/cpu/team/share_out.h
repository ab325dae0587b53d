// Division of work into chunks for the team.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/cpu/team/parallel_for.h"

namespace quire::cpu {

struct Range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

// Part i of [0, count) that is cut into `parts` nearly equal ones.
constexpr Range part_of(std::uint32_t count, std::uint32_t parts, std::uint32_t i) {
  return {static_cast<std::uint32_t>(std::uint64_t{count} * i / parts),
          static_cast<std::uint32_t>(std::uint64_t{count} * (i + 1) / parts)};
}

constexpr std::uint32_t most_chunks(std::uint32_t num_workers) { return 64 * num_workers; }

// Number of chunks for work that touches `bytes` (weights read once for up to eight rows, or rows read and written).
// Below kAlone the caller works alone, because waking others costs more. Otherwise chunks have at least kLeast bytes;
// there are several per worker, and none is much longer than kLong, some 50 us, so that a worker that lost its core to
// a thread that serves requests delays little.
constexpr std::uint32_t num_chunks(std::size_t bytes, std::uint32_t num_workers) {
  constexpr std::size_t kAlone = 128 << 10;
  constexpr std::size_t kLeast = 64 << 10;
  constexpr std::size_t kLong = 1 << 20;
  if (num_workers == 1 || bytes < kAlone) return 1;
  const std::size_t wanted = std::clamp<std::size_t>(bytes / kLong, 8 * num_workers, most_chunks(num_workers));
  return static_cast<std::uint32_t>(std::min(bytes / kLeast, wanted));
}

// Chunks of rows that touch `row_bytes` each.
class RowChunks {
 public:
  RowChunks(const Team& team, std::uint32_t rows, std::size_t row_bytes)
      : num_rows_(rows), count_(std::min(rows, num_chunks(rows * row_bytes, team.size()))) {}
  std::uint32_t count() const { return count_; }
  template <typename Body>
  void for_rows(std::uint32_t chunk, const Body& body) const {
    const Range range = part_of(num_rows_, count_, chunk);
    for (std::uint32_t row = range.first; row < range.last; ++row) body(row);
  }

 private:
  std::uint32_t num_rows_;
  std::uint32_t count_;
};

// Calls body(row) for rows [0, rows), each touching `row_bytes`, on the team.
template <typename Body>
void for_rows(Team& team, std::uint32_t rows, std::size_t row_bytes, const Body& body) {
  const RowChunks chunks(team, rows, row_bytes);
  team.for_chunks(chunks.count(), [&](std::uint32_t chunk, std::uint32_t) { chunks.for_rows(chunk, body); });
}

}  // namespace quire::cpu
