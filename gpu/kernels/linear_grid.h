// How a linear layer is dealt to blocks: which kernel, which rows, which outputs. All inputs of an output are one
// block's, so that nothing is added up between blocks. It moves no bit (linear.h): it decides how evenly the
// multiprocessors are at work, how many bytes are on their way at a time, and how often rows are read.
// Shape   all row counts of a tile of 8 rows have the same grid.
// Thread  any; pure.
// Source  ours; measured on an H200 (docs/gpu.md).
#pragma once

#include "gpu/device/weight_layout.h"

namespace quire::gpu {

inline constexpr std::uint32_t kMultiprocessors = 132;  // of an H100 or H200; another number costs speed alone
inline constexpr std::uint32_t kPairTiles = 2;

enum class LinearKernel : std::uint8_t { kSplit, kWide, kWarpgroups };

// A block of LinearWide or LinearWarpgroups.
struct LinearShape {
  std::uint32_t row_tiles = 0;  // of 8 rows, a warp's
  std::uint32_t pairs = 0;      // warps with a pair of tiles of outputs each, and the same rows
  std::uint32_t row_warps = 0;  // of those, with other rows

  constexpr std::uint32_t rows() const { return row_tiles * kTileRows * row_warps; }
  constexpr std::uint32_t warps() const { return pairs * row_warps; }
};
inline constexpr LinearShape kManyRows{8, 4, 2};
inline constexpr LinearShape kManyRowsTight{4, 4, 2};  // with 8 tiles of rows these would spill

constexpr LinearShape many_rows(backend::WeightType type) {
  return in_nibbles(type) || in_integers(type) ? kManyRowsTight : kManyRows;
}

inline constexpr std::uint32_t kFewRows = 32;     // a block of LinearSplit has up to so many
inline constexpr std::uint32_t kSplitRows = 128;  // up to so many it may be taken, too, in several blocks of rows

struct LinearGrid {
  LinearKernel kernel = LinearKernel::kSplit;
  std::uint32_t row_tiles = 0;  // of a block: LinearSplit's
  std::uint32_t tiles = 0;      // of outputs, likewise
  std::uint32_t row_blocks = 0;
  std::uint32_t groups = 0;  // of outputs

  constexpr std::uint32_t blocks() const { return row_blocks * groups; }
};

// How much of the time a multiprocessor has work, were so many blocks to begin at once and to take equally long.
constexpr double evenness(std::uint32_t blocks) {
  return 1.0 * blocks / (kMultiprocessors * pieces_of(blocks, kMultiprocessors));
}

// `gates`: outputs are gates and their other factors (Finish::kGate). `warpgroups`: LinearWarpgroups may be taken.
constexpr LinearGrid linear_grid(backend::WeightType type, std::uint32_t num_outputs, std::uint32_t num_rows,
                                 bool gates, bool warpgroups) {
  const std::uint32_t tiles = num_tiles(num_outputs);
  const std::uint32_t pairs = pieces_of(tiles, kPairTiles);
  LinearGrid grid;
  if (num_rows > kFewRows) {
    const LinearShape many = warpgroups ? kManyRows : many_rows(type);
    grid.kernel = warpgroups ? LinearKernel::kWarpgroups : LinearKernel::kWide;
    grid.row_blocks = pieces_of(num_rows, many.rows());
    grid.groups = pieces_of(pairs, many.pairs);
    const bool are_enough = grid.row_blocks * grid.groups * 2 >= kMultiprocessors;
    if (warpgroups || are_enough || num_rows > kSplitRows) return grid;
    grid.kernel = LinearKernel::kSplit;
  }
  const std::uint32_t row_tiles = pieces_of(num_rows, kTileRows);
  grid.row_tiles = row_tiles <= 2 ? row_tiles : 4;
  // One tile, where two would leave multiprocessors without a block, or with too few bytes under way.
  const bool is_enough = evenness(pairs) >= 0.85 && (grid.row_tiles > 1 || pairs >= 2 * kMultiprocessors);
  grid.tiles = gates || grid.row_tiles > 2 || is_enough ? 2 : 1;
  grid.row_blocks = pieces_of(num_rows, grid.row_tiles * kTileRows);
  grid.groups = grid.tiles == 2 ? pairs : tiles;
  return grid;
}

}  // namespace quire::gpu
