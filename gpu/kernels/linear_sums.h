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
  const float* x_scales = nullptr;  // [T, slices], of int8 rows but those for blocks
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
  if constexpr (has_row_scales(Form::kFormat)) {
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
QUIRE_DEVICE float& output_at(const LinearArgs& a, std::uint32_t row, std::uint32_t output) {
  return a.out[std::size_t{row} * a.out_width + output];
}
QUIRE_DEVICE void put_output(const LinearArgs& a, std::uint32_t row, std::uint32_t output, float y) {
  float& out = output_at(a, row, output);
  out = a.finish == Finish::kAdd ? fma(y, a.scale, out) : y;
}
// Calls body(activation) for the one of the call, by_sigmoid() or any: the loops over a lane's numbers are unrolled,
// and an activation that is chosen for each of them would be more code than a multiprocessor's cache holds.
template <typename Body>
QUIRE_DEVICE void with_activation(const LinearArgs& a, const Body& body) {
  if (by_sigmoid(a.activation)) {
    body([&](float gate) { return sigmoid_activated(a.activation, gate); });
  } else {
    body([&](float gate) { return activated(a.activation, gate); });
  }
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
    if (a_.finish != Finish::kGate) {
      QUIRE_UNROLLED for (unsigned t = 0; t < kTiles; ++t) finish_tile(t);
      return;
    }
    with_activation(a_, [&](const auto& activation) {
      const std::uint32_t width = a_.w.n / 2;
      each(at_.tiles[0], width, [&](unsigned r, unsigned i, std::uint32_t row, std::uint32_t output) {
        output_at(a_, row, output) = activation(finished<Form>(a_, output, totals_[0][r][i])) *
                                     finished<Form>(a_, width + output, totals_[kTiles - 1][r][i]);
      });
    });
  }

  // finish() for a warp that has one tile of a pair, the first or the second. The factors of gates go from one warp to
  // the other through shared memory, [rows][kFactorStride]. Called by all threads of the block.
  static constexpr unsigned kFactorStride = kPairs * kTileOutputs + 1;
  QUIRE_DEVICE void finish_apart(unsigned tile_of_pair, float* factors) const {
    if (a_.finish != Finish::kGate) return finish_tile(0);
    sync_block();  // no thread still reads the old contents
    if (tile_of_pair == 1) {
      each(at_.tiles[0], a_.w.n, [&](unsigned r, unsigned i, std::uint32_t, std::uint32_t output) {
        factors[factor_at(r, i)] = finished<Form>(a_, output, totals_[0][r][i]);
      });
    }
    sync_block();
    if (tile_of_pair == 1) return;
    with_activation(a_, [&](const auto& activation) {
      each(at_.tiles[0], a_.w.n, [&](unsigned r, unsigned i, std::uint32_t row, std::uint32_t output) {
        output_at(a_, row, output) =
            activation(finished<Form>(a_, output, totals_[0][r][i])) * factors[factor_at(r, i)];
      });
    });
  }

 private:
  static constexpr unsigned kRowsAhead =
      kRowTiles < 4 ? kRowTiles : 4;  // row tiles whose old outputs are loaded at once
  static_assert(kRowTiles % kRowsAhead == 0);

  // body(r, i, row, output) for the lane's numbers of the row tiles from `first` on that exist.
  template <unsigned kCount = kRowTiles, typename Body>
  QUIRE_DEVICE void each(std::uint32_t tile, std::uint32_t num_outputs, const Body& body, unsigned first = 0) const {
    QUIRE_UNROLLED for (unsigned r = 0; r < kCount; ++r) {
      QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t row = at_.row(first + r, i);
        const std::uint32_t output = tile * kTileOutputs + output_in_tile(at_.lane, i);
        if (row < a_.num_rows && output < num_outputs) body(first + r, i, row, output);
      }
    }
  }
  // Stores or adds the numbers of a tile. Old outputs are loaded before new ones are stored, or each load would wait
  // for the store before it.
  QUIRE_DEVICE void finish_tile(unsigned t) const {
    const std::uint32_t tile = at_.tiles[0] + t;
    if (a_.finish == Finish::kStore) {
      each(tile, a_.w.n, [&](unsigned r, unsigned i, std::uint32_t row, std::uint32_t output) {
        output_at(a_, row, output) = finished<Form>(a_, output, totals_[t][r][i]);
      });
      return;
    }
    QUIRE_UNROLLED for (unsigned first = 0; first < kRowTiles; first += kRowsAhead) {
      float before[kRowsAhead][4] = {};
      each<kRowsAhead>(
          tile, a_.w.n,
          [&](unsigned r, unsigned i, std::uint32_t row, std::uint32_t output) {
            before[r - first][i] = output_at(a_, row, output);
          },
          first);
      each<kRowsAhead>(
          tile, a_.w.n,
          [&](unsigned r, unsigned i, std::uint32_t row, std::uint32_t output) {
            output_at(a_, row, output) =
                fma(finished<Form>(a_, output, totals_[t][r][i]), a_.scale, before[r - first][i]);
          },
          first);
    }
  }
  QUIRE_DEVICE std::uint32_t factor_at(unsigned r, unsigned i) const {
    return (at_.row(r, i) - at_.first_row) * kFactorStride + at_.pair * kTileOutputs + output_in_tile(at_.lane, i);
  }
  const LinearArgs& a_;
  const LinearPlace& at_;
  float totals_[kTiles][kRowTiles][4] = {};
};

}  // namespace quire::gpu
