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

// A block of LinearWide.
struct LinearShape {
  std::uint32_t row_tiles = 0;  // of 8 rows, a warp's
  std::uint32_t pairs = 0;      // warps with a pair of tiles of outputs each, and the same rows
  std::uint32_t row_warps = 0;  // of those, with other rows

  constexpr std::uint32_t rows() const { return row_tiles * kTileRows * row_warps; }
  constexpr std::uint32_t warps() const { return pairs * row_warps; }
};
inline constexpr LinearShape kManyRows{8, 4, 2};
inline constexpr LinearShape kManyRowsTight{4, 4, 2};  // with 8 tiles of rows these would spill

constexpr LinearShape many_rows(backend::WeightType type) { return in_integers(type) ? kManyRowsTight : kManyRows; }

inline constexpr std::uint32_t kFewRows = 32;  // a block of LinearSplit has up to so many
inline constexpr std::uint32_t kWarpgroupsFrom =
    17;                                           // rows of bf16 weights; of those that are widened, more than kFewRows
inline constexpr std::uint32_t kSplitRows = 128;  // up to so many it may be taken, too, in several blocks of rows

// Blocks of LinearWarpgroups: so many tiles of outputs, and rows.
inline constexpr std::uint32_t kFewTiles = 4;
inline constexpr std::uint32_t kManyTiles = 8;
inline constexpr std::uint32_t kHalfRowBlock = kRowBlock / 2;

struct LinearGrid {
  LinearKernel kernel = LinearKernel::kSplit;
  std::uint32_t row_tiles = 0;  // of a block
  std::uint32_t tiles = 0;      // of outputs, likewise
  std::uint32_t row_blocks = 0;
  std::uint32_t groups = 0;  // of outputs

  constexpr std::uint32_t blocks() const { return row_blocks * groups; }
};

// How much of the time a multiprocessor has work, were so many blocks to begin at once and to take equally long.
constexpr double evenness(std::uint32_t blocks) {
  return 1.0 * blocks / (kMultiprocessors * pieces_of(blocks, kMultiprocessors));
}

constexpr LinearGrid grid_of(LinearKernel kernel, std::uint32_t num_outputs, std::uint32_t num_rows,
                             std::uint32_t row_tiles, std::uint32_t tiles) {
  return {kernel, row_tiles, tiles, pieces_of(num_rows, row_tiles * kTileRows),
          pieces_of(num_tiles(num_outputs), tiles)};
}

// Half as many outputs a block where twice as many blocks keep the multiprocessors much busier: each then brings rows for fewer
// products.
constexpr LinearGrid warpgroups_grid(std::uint32_t num_outputs, std::uint32_t num_rows) {
  const std::uint32_t rows = num_rows <= kHalfRowBlock ? kHalfRowBlock : kRowBlock;
  const LinearGrid many = grid_of(LinearKernel::kWarpgroups, num_outputs, num_rows, rows / kTileRows, kManyTiles);
  const LinearGrid few = grid_of(LinearKernel::kWarpgroups, num_outputs, num_rows, rows / kTileRows, kFewTiles);
  return evenness(few.blocks()) >= 1.4 * evenness(many.blocks()) ? few : many;
}

// `gates`: outputs are gates and their other factors (Finish::kGate). `warpgroups`: LinearWarpgroups may be taken.
constexpr LinearGrid linear_grid(backend::WeightType type, std::uint32_t num_outputs, std::uint32_t num_rows,
                                 bool gates, bool warpgroups) {
  const std::uint32_t pairs = pieces_of(num_tiles(num_outputs), kPairTiles);
  const bool is_widened = in_wide_bytes(type) || in_nibbles(type);
  if (warpgroups && num_rows >= (is_widened ? kFewRows + 1 : kWarpgroupsFrom)) {
    const LinearGrid groups = warpgroups_grid(num_outputs, num_rows);
    // Codes that are widened once for few rows are no work for half of the multiprocessors.
    const bool is_little = is_widened && num_rows <= kHalfRowBlock && groups.blocks() * 2 < kMultiprocessors;
    if (!is_little) return groups;
  }
  if (num_rows > kFewRows) {
    const LinearShape many = many_rows(type);
    const LinearGrid wide =
        grid_of(LinearKernel::kWide, num_outputs, num_rows, many.rows() / kTileRows, many.pairs * kPairTiles);
    if (wide.blocks() * 2 >= kMultiprocessors || num_rows > kSplitRows) return wide;
  }
  const std::uint32_t needed = pieces_of(num_rows, kTileRows);
  const std::uint32_t row_tiles = needed <= 2 ? needed : 4;
  // One tile, where two would leave multiprocessors without a block, or with too few bytes under way.
  const bool is_enough = evenness(pairs) >= 0.85 && (row_tiles > 1 || pairs >= 2 * kMultiprocessors);
  return grid_of(LinearKernel::kSplit, num_outputs, num_rows, row_tiles, gates || row_tiles > 2 || is_enough ? 2 : 1);
}

}  // namespace quire::gpu
