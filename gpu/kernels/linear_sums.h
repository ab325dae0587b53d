// Parts that the kernels of linear layers share, all but the products: arguments, the tiles and rows of a warp, how
// slices become totals, and the finish. The order of sums is linear.h's.
// Shape   a warp has a pair of tiles of 16 outputs (or of gates and of their factors), or one tile of a pair
//         (linear_warpgroups.h), and kRowTiles tiles of 8 rows. A lane's numbers of a tile are those of matrix.h.
// Source  ours.
#pragma once

#include "gpu/device/numbers.h"
#include "gpu/device/stream.h"
#include "gpu/kernels/linear_grid.h"
#include "gpu/kernels/rows.h"

namespace quire::gpu {

enum class Finish : std::uint8_t { kStore, kAdd, kGate };

struct LinearArgs {
  const std::byte* x = nullptr;
  const float* x_scales = nullptr;  // [T, slices], of int8 rows
  std::uint32_t num_rows = 0;
  WeightView w;
  Finish finish = Finish::kStore;
  float* out = nullptr;
  std::uint32_t out_width = 0;                                  // of a row of out
  float scale = 1.0f;                                           // kAdd: out += y · scale
  backend::Activation activation = backend::Activation::kSilu;  // kGate
};

// Tile t of a pair; num_tiles or more: the pair has no such tile.
QUIRE_DEVICE std::uint32_t tile_of_pair(const LinearArgs& a, std::uint32_t pair, unsigned t) {
  const std::uint32_t tiles = num_tiles(a.w.n);
  if (a.finish != Finish::kGate) return pair * kPairTiles + t;
  return pair < tiles / 2 ? pair + t * (tiles / 2) : tiles;
}
// Row and output of a lane's number i of a tile.
QUIRE_DEVICE std::uint32_t row_in_tile(unsigned lane, unsigned i) { return lane % 4 * 2 + i % 2; }
QUIRE_DEVICE std::uint32_t output_in_tile(unsigned lane, unsigned i) { return lane / 4 + 8 * (i / 2); }

template <typename Form>
QUIRE_DEVICE float joined(const LinearArgs& a, float total, float sum, std::uint32_t slice, std::uint32_t row) {
  if constexpr (in_integers(Form::kFormat)) {
    return row < a.num_rows ? fma(sum, a.x_scales[std::size_t{row} * num_slices(a.w.k) + slice], total) : 0.0f;
  } else {
    return total + sum;
  }
}
template <typename Form>
QUIRE_DEVICE float finished(const LinearArgs& a, std::uint32_t output, float total) {
  float y = total;
  if constexpr (has_output_scales(Form::kFormat)) y = y * a.w.scales[output];
  return a.w.bias == nullptr ? y : y + a.w.bias[output];
}
QUIRE_DEVICE void put_output(const LinearArgs& a, std::uint32_t row, std::uint32_t output, float y) {
  float* out = a.out + std::size_t{row} * a.out_width + output;
  *out = a.finish == Finish::kAdd ? fma(y, a.scale, *out) : y;
}
QUIRE_DEVICE void put_gated(const LinearArgs& a, std::uint32_t row, std::uint32_t output, float gate, float factor) {
  a.out[std::size_t{row} * a.out_width + output] = activated(a.activation, gate) * factor;
}

// A warp's place in a block of many rows. grid.x: row blocks, grid.y: groups of outputs. Warps with the same rows are
// adjacent.
struct LinearPlace {
  std::uint32_t num_slices;
  std::uint32_t num_steps;
  std::uint32_t num_tiles;
  std::uint32_t group;
  std::uint32_t pair;
  std::uint32_t tiles[kPairTiles];
  std::uint32_t first_row;
  unsigned lane;

  QUIRE_DEVICE LinearPlace(const LinearArgs& a, std::uint32_t row_tiles, std::uint32_t pairs, std::uint32_t row_warps)
      : num_slices(gpu::num_slices(a.w.k)),
        num_steps(gpu::num_steps(a.w.k)),
        num_tiles(gpu::num_tiles(a.w.n)),
        group(block().y),
        pair(thread() / kWarp % pairs),
        first_row((block().x * row_warps + thread() / kWarp / pairs) * row_tiles * kTileRows),
        lane(thread() % kWarp) {
    for (unsigned t = 0; t < kPairTiles; ++t) tiles[t] = tile_of_pair(a, group * pairs + pair, t);
  }
  QUIRE_DEVICE bool has_tiles() const { return tiles[0] < num_tiles; }
  QUIRE_DEVICE std::uint32_t row(unsigned row_tile, unsigned i) const {
    return first_row + row_tile * kTileRows + row_in_tile(lane, i);
  }
};

// kPairs: pairs of output tiles in the block.
template <typename Form, unsigned kRowTiles, unsigned kTiles = kPairTiles, unsigned kPairs = kManyRows.pairs>
class LinearTotals {
 public:
  using Sums = typename Form::Sum[kTiles][kRowTiles];

  QUIRE_DEVICE LinearTotals(const LinearArgs& args, const LinearPlace& place) : a_(args), at_(place) {}

  QUIRE_DEVICE void end_slice(std::uint32_t slice, const Sums& sums) {
    QUIRE_UNROLLED for (unsigned t = 0; t < kTiles; ++t) {
      QUIRE_UNROLLED for (unsigned r = 0; r < kRowTiles; ++r) {
        QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) {
          const auto sum = static_cast<float>(sums[t][r].c[i]);
          totals_[t][r][i] = joined<Form>(a_, totals_[t][r][i], sum, slice, at_.row(r, i));
        }
      }
    }
  }

  QUIRE_DEVICE void finish() const {
    QUIRE_UNROLLED for (unsigned r = 0; r < kRowTiles; ++r) {
      QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) store(r, i);
    }
  }

  // finish() for a warp that has one tile of a pair, the first or the second. The factors of gates go from one warp to
  // the other through shared memory, [rows][kFactorStride]. Called by all threads of the block.
  static constexpr unsigned kFactorStride = kPairs * kTileOutputs + 1;
  QUIRE_DEVICE void finish_apart(unsigned tile_of_pair, float* factors) const {
    const bool gates = a_.finish == Finish::kGate;
    if (gates) {
      sync_block();  // no thread still reads the old contents
      if (tile_of_pair == 1) {
        each_apart([&](unsigned r, unsigned i, std::uint32_t output) {
          factors[factor_at(r, i)] = finished<Form>(a_, output, totals_[0][r][i]);
        });
      }
      sync_block();
      if (tile_of_pair == 1) return;
    }
    each_apart([&](unsigned r, unsigned i, std::uint32_t output) {
      const float y = finished<Form>(a_, output, totals_[0][r][i]);
      if (gates) {
        put_gated(a_, at_.row(r, i), output, y, factors[factor_at(r, i)]);
      } else {
        put_output(a_, at_.row(r, i), output, y);
      }
    });
  }

 private:
  template <typename Body>
  QUIRE_DEVICE void each_apart(const Body& body) const {
    QUIRE_UNROLLED for (unsigned r = 0; r < kRowTiles; ++r) {
      QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t output = at_.tiles[0] * kTileOutputs + output_in_tile(at_.lane, i);
        if (at_.row(r, i) < a_.num_rows && output < a_.w.n) body(r, i, output);
      }
    }
  }
  QUIRE_DEVICE std::uint32_t factor_at(unsigned r, unsigned i) const {
    return (at_.row(r, i) - at_.first_row) * kFactorStride + at_.pair * kTileOutputs + output_in_tile(at_.lane, i);
  }
  // Stores one number of each tile of the pair.
  QUIRE_DEVICE void store(unsigned r, unsigned i) const {
    const std::uint32_t row = at_.row(r, i);
    if (row >= a_.num_rows) return;
    const std::uint32_t output = at_.tiles[0] * kTileOutputs + output_in_tile(at_.lane, i);
    if (a_.finish == Finish::kGate) {
      const std::uint32_t width = a_.w.n / 2;
      if (output >= width) return;
      put_gated(a_, row, output, finished<Form>(a_, output, totals_[0][r][i]),
                finished<Form>(a_, width + output, totals_[1][r][i]));
      return;
    }
    QUIRE_UNROLLED for (unsigned t = 0; t < kTiles; ++t) {
      const std::uint32_t at = output + t * kTileOutputs;
      if (at < a_.w.n) put_output(a_, row, at, finished<Form>(a_, at, totals_[t][r][i]));
    }
  }

  const LinearArgs& a_;
  const LinearPlace& at_;
  float totals_[kTiles][kRowTiles][4] = {};
};

}  // namespace quire::gpu
