// How a linear layer is dealt to blocks: which rows, which outputs, and which part of the inputs are a block's. Nothing of it moves a
// bit (linear.h): it decides how evenly the multiprocessors are at work, and how many bytes are on their way at a time.
// Shape   a warp has a pair of tiles of outputs, a block's warps are neighbours. A part is whole slices.
// Thread  any; pure.
// Source  ours.
#pragma once

#include "gpu/device/weight_layout.h"

namespace quire::gpu {

inline constexpr std::uint32_t kMultiprocessors = 132;  // of an H100 or H200; another number costs speed alone
inline constexpr std::uint32_t kPairTiles = 2;

// A kernel of its own for each. Many warps share rows, few are dealt evenly.
struct LinearShape {
  std::uint32_t row_tiles = 0;     // of 8 rows, a warp's
  std::uint32_t pairs = 0;         // warps of a block, with a pair of tiles of outputs each, and the same rows
  std::uint32_t row_warps = 0;     // of those, with other rows
  std::uint32_t wanted_warps = 0;  // on a multiprocessor, if the work is enough: so many bytes are under way

  constexpr std::uint32_t rows() const { return row_tiles * kTileRows * row_warps; }
  constexpr std::uint32_t warps() const { return pairs * row_warps; }
};
inline constexpr LinearShape kFewRows{1, 2, 1, 12};
inline constexpr LinearShape kSomeRows{2, 4, 1, 12};
inline constexpr LinearShape kMoreRows{4, 4, 1, 8};
inline constexpr LinearShape kManyRows{8, 4, 2, 8};
inline constexpr LinearShape kManyRowsTight{4, 4, 2, 8};  // with 8 tiles of rows these would spill

constexpr LinearShape many_rows(backend::WeightType type) {
  return in_nibbles(type) || in_integers(type) ? kManyRowsTight : kManyRows;
}
constexpr LinearShape linear_shape(backend::WeightType type, std::uint32_t num_rows) {
  if (num_rows <= kFewRows.rows()) return kFewRows;
  if (num_rows <= kSomeRows.rows()) return kSomeRows;
  return num_rows <= kMoreRows.rows() ? kMoreRows : many_rows(type);
}

struct LinearGrid {
  std::uint32_t row_blocks = 0;
  std::uint32_t groups = 0;  // of outputs
  std::uint32_t slices = 0;
  std::uint32_t slices_of_part = 0;

  constexpr std::uint32_t parts() const { return pieces_of(slices, slices_of_part); }
  constexpr std::uint32_t blocks() const { return row_blocks * groups * parts(); }
  // Sums that parts leave for the last of them: the first part adds up its own.
  constexpr std::uint32_t kept_sums() const { return parts() == 1 ? 0 : slices - slices_of_part + 1; }
  // How much of the time, all blocks beginning at once and none waiting for memory, a multiprocessor has work.
  constexpr double evenness() const {
    const double most = 1.0 * pieces_of(blocks(), kMultiprocessors) * slices_of_part;
    return 1.0 * row_blocks * groups * slices / (kMultiprocessors * most);
  }
};

// The fewest parts that are nearly as good as the best: evenly dealt, many warps under way, few sums kept.
constexpr LinearGrid linear_grid(backend::WeightType type, std::uint32_t num_outputs, std::uint32_t num_inputs,
                                 std::uint32_t num_rows) {
  const LinearShape shape = linear_shape(type, num_rows);
  LinearGrid grid;
  grid.row_blocks = pieces_of(num_rows, shape.rows());
  grid.groups = pieces_of(pieces_of(num_tiles(num_outputs), kPairTiles), shape.pairs);
  grid.slices = num_slices(num_inputs);
  const auto worth = [&](std::uint32_t slices_of_part) {
    LinearGrid candidate = grid;
    candidate.slices_of_part = slices_of_part;
    const double wanted = 1.0 * shape.wanted_warps * kMultiprocessors / shape.warps();
    const double busy = candidate.blocks() < wanted ? candidate.blocks() / wanted : 1.0;
    // A kept sum is written and read, 8 bytes for 512 of bf16, though in the second cache: a quarter as dear.
    const double kept = 0.25 * 8 / 512 * num_rows * candidate.kept_sums() / candidate.slices;
    return candidate.evenness() * busy / (1.0 + kept);
  };
  double best = 0.0;
  for (std::uint32_t s = grid.slices; s > 0; --s) best = worth(s) > best ? worth(s) : best;
  grid.slices_of_part = grid.slices;
  while (worth(grid.slices_of_part) < 0.97 * best) --grid.slices_of_part;
  return grid;
}

// Room for kept sums, each a number for every row and output, and a counter for each block of rows and group of outputs.
constexpr std::size_t num_kept(const LinearGrid& grid, std::uint32_t num_outputs, std::uint32_t num_rows) {
  return std::size_t{grid.kept_sums()} * num_tiles(num_outputs) * kTileOutputs * num_rows;
}
constexpr std::size_t num_counters(const LinearGrid& grid) {
  return grid.parts() == 1 ? 0 : std::size_t{grid.row_blocks} * grid.groups;
}

}  // namespace quire::gpu
