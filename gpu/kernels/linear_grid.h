// Grid of a linear layer: which kernel, and how rows and outputs are divided among thread blocks. A block has all
// inputs of its outputs (no split-K), so that no sum crosses blocks. The choice does not change any bit (linear.h): it
// decides how evenly the multiprocessors are used, how many bytes are in flight, and how often rows are read.
// Shape   all row counts within a tile of 8 rows have the same grid.
// Thread  any; pure.
// Source  ours; measured on an H200 (docs/gpu.md).
#pragma once

#include "gpu/device/weight_layout.h"

namespace quire::gpu {

inline constexpr std::uint32_t kMultiprocessors = 132;  // of an H100 or H200; another number costs speed only
inline constexpr std::uint32_t kPairTiles = 2;

enum class LinearKernel : std::uint8_t { kSplit, kWide, kWarpgroups };

// Shape of a block of LinearWide.
struct LinearShape {
  std::uint32_t row_tiles = 0;  // of 8 rows, per warp
  std::uint32_t pairs = 0;      // warps with the same rows, each with a pair of output tiles
  std::uint32_t row_warps = 0;  // sets of such warps, each with other rows

  constexpr std::uint32_t rows() const { return row_tiles * kTileRows * row_warps; }
  constexpr std::uint32_t warps() const { return pairs * row_warps; }
};
inline constexpr LinearShape kManyRows{8, 4, 2};
inline constexpr LinearShape kManyRowsTight{4, 4, 2};  // with 8 tiles of rows these would spill

constexpr LinearShape many_rows(backend::Format format) {
  return in_integers(format) || format.is_blocks() ? kManyRowsTight : kManyRows;
}

inline constexpr std::uint32_t kFewRows = 32;  // at most, in a block of LinearSplit
// Rows from which LinearWarpgroups is used for bf16; for types that are widened, from kFewRows + 1.
inline constexpr std::uint32_t kWarpgroupsFrom = 17;
// Up to this many rows LinearSplit may be used, in several row blocks.
inline constexpr std::uint32_t kSplitRows = 128;

// Blocks of LinearWarpgroups: tiles of outputs, and rows.
inline constexpr std::uint32_t kFewTiles = 4;
inline constexpr std::uint32_t kManyTiles = 8;
inline constexpr std::uint32_t kHalfRowBlock = kRowBlock / 2;

struct LinearGrid {
  LinearKernel kernel = LinearKernel::kSplit;
  std::uint32_t row_tiles = 0;  // per block
  std::uint32_t tiles = 0;      // output tiles per block
  std::uint32_t row_blocks = 0;
  std::uint32_t groups = 0;  // groups of output tiles

  constexpr std::uint32_t blocks() const { return row_blocks * groups; }
};

// Fraction of the time that multiprocessors are busy if that many blocks start at once and take equally long.
constexpr double evenness(std::uint32_t blocks) {
  return 1.0 * blocks / (kMultiprocessors * pieces_of(blocks, kMultiprocessors));
}

constexpr LinearGrid grid_of(LinearKernel kernel, std::uint32_t num_outputs, std::uint32_t num_rows,
                             std::uint32_t row_tiles, std::uint32_t tiles) {
  return {kernel, row_tiles, tiles, pieces_of(num_rows, row_tiles * kTileRows),
          pieces_of(num_tiles(num_outputs), tiles)};
}

// Uses half as many outputs per block if twice as many blocks keep the multiprocessors much busier; each block then
// loads its rows for fewer products.
constexpr LinearGrid warpgroups_grid(std::uint32_t num_outputs, std::uint32_t num_rows) {
  const std::uint32_t rows = num_rows <= kHalfRowBlock ? kHalfRowBlock : kRowBlock;
  const LinearGrid many = grid_of(LinearKernel::kWarpgroups, num_outputs, num_rows, rows / kTileRows, kManyTiles);
  const LinearGrid few = grid_of(LinearKernel::kWarpgroups, num_outputs, num_rows, rows / kTileRows, kFewTiles);
  return evenness(few.blocks()) >= 1.4 * evenness(many.blocks()) ? few : many;
}

// gates: outputs are gates and their factors (Finish::kGate). warpgroups: LinearWarpgroups may be used.
constexpr LinearGrid linear_grid(backend::Format format, std::uint32_t num_outputs, std::uint32_t num_rows, bool gates,
                                 bool warpgroups) {
  const std::uint32_t pairs = pieces_of(num_tiles(num_outputs), kPairTiles);
  const bool is_widened = in_wide_bytes(format) || in_nibbles(format);
  if (warpgroups && num_rows >= (is_widened ? kFewRows + 1 : kWarpgroupsFrom)) {
    const LinearGrid groups = warpgroups_grid(num_outputs, num_rows);
    // Not for up to kHalfRowBlock rows of a widened format if the grid would leave half of the multiprocessors idle.
    const bool is_little = is_widened && num_rows <= kHalfRowBlock && groups.blocks() * 2 < kMultiprocessors;
    if (!is_little) return groups;
  }
  if (num_rows > kFewRows) {
    const LinearShape many = many_rows(format);
    const LinearGrid wide =
        grid_of(LinearKernel::kWide, num_outputs, num_rows, many.rows() / kTileRows, many.pairs * kPairTiles);
    if (wide.blocks() * 2 >= kMultiprocessors || num_rows > kSplitRows) return wide;
  }
  const std::uint32_t needed = pieces_of(num_rows, kTileRows);
  const std::uint32_t row_tiles = needed <= 2 ? needed : 4;
  // Uses one tile if two would leave multiprocessors without a block, or with too few bytes in flight.
  const bool is_enough = evenness(pairs) >= 0.85 && (row_tiles > 1 || pairs >= 2 * kMultiprocessors);
  return grid_of(LinearKernel::kSplit, num_outputs, num_rows, row_tiles, gates || row_tiles > 2 || is_enough ? 2 : 1);
}

}  // namespace quire::gpu
