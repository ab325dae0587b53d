// How work is cut into chunks for the team.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/cpu/parallel_for.h"

namespace quire::cpu {

struct Range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

// Part i of [0, count) cut into `parts` nearly equal ones.
constexpr Range part_of(std::uint32_t count, std::uint32_t parts, std::uint32_t i) {
  return {static_cast<std::uint32_t>(std::uint64_t{count} * i / parts),
          static_cast<std::uint32_t>(std::uint64_t{count} * (i + 1) / parts)};
}

// Into how many chunks to cut work that touches `bytes` (weights read once for up to eight rows, or rows read and
// written): below kAlone the caller does it by itself, since waking others costs more; above, chunks of at least
// kLeast, and several per worker so that one who lost its core holds up little.
constexpr std::uint32_t num_chunks(std::size_t bytes, std::uint32_t num_workers) {
  constexpr std::size_t kAlone = 128 << 10;
  constexpr std::size_t kLeast = 64 << 10;
  if (num_workers == 1 || bytes < kAlone) return 1;
  return static_cast<std::uint32_t>(std::min<std::size_t>(bytes / kLeast, std::size_t{8} * num_workers));
}

// body(row) for rows [0, rows), each touching `row_bytes`.
template <typename Body>
void for_rows(Team& team, std::uint32_t rows, std::size_t row_bytes, const Body& body) {
  const std::uint32_t chunks = std::min(rows, num_chunks(rows * row_bytes, team.size()));
  team.for_chunks(chunks, [&](std::uint32_t chunk, std::uint32_t) {
    const Range range = part_of(rows, chunks, chunk);
    for (std::uint32_t row = range.first; row < range.last; ++row) body(row);
  });
}

}  // namespace quire::cpu
