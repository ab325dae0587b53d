// What a warp of a linear layer does but for multiplying: which tiles and rows are its, how slices become totals, and what becomes of
// these. linear.h has the order.
// Shape   a warp has a pair of tiles of 16 outputs, or of gates and of their other factors, or one of the two (linear_warpgroups.h),
//         and kRowTiles tiles of 8 rows; a lane's numbers of a tile are those of matrix.h.
// Source  the last block adds up: stream-K (Osama et al. 2023); the rest ours.
#pragma once

#include "gpu/device/numbers.h"
#include "gpu/device/stream.h"
#include "gpu/kernels/linear_grid.h"
#include "gpu/kernels/rows.h"

namespace quire::gpu {

enum class Finish : std::uint8_t { kStore, kAdd, kGate };

struct LinearArgs {
  const std::byte* x = nullptr;
  const float* x_scales = nullptr;  // [T, slices], of whole numbers
  std::uint32_t num_rows = 0;
  WeightView w;
  std::uint32_t num_groups = 0;
  std::uint32_t slices_of_part = 0;
  float* kept = nullptr;              // [kept sums][tiles of outputs][T][16]
  std::uint32_t* counters = nullptr;  // [blocks of rows][groups], 0
  Finish finish = Finish::kStore;
  float* out = nullptr;
};

// grid.x: blocks of rows, grid.y: groups of outputs, part by part. Warps that have the same rows are neighbours.
struct LinearPlace {
  std::uint32_t num_slices;
  std::uint32_t num_steps;
  std::uint32_t num_tiles;
  std::uint32_t num_parts;
  std::uint32_t part;
  std::uint32_t group;
  std::uint32_t first_slice;
  std::uint32_t last_slice;
  std::uint32_t end_step;
  std::uint32_t pair;
  std::uint32_t tiles[kPairTiles];
  std::uint32_t first_row;
  unsigned lane;

  QUIRE_DEVICE LinearPlace(const LinearArgs& a, std::uint32_t row_tiles, std::uint32_t pairs, std::uint32_t row_warps)
      : num_slices(gpu::num_slices(a.w.k)),
        num_steps(gpu::num_steps(a.w.k)),
        num_tiles(gpu::num_tiles(a.w.n)),
        num_parts(pieces_of(num_slices, a.slices_of_part)),
        part(block().y / a.num_groups),
        group(block().y % a.num_groups),
        first_slice(part * a.slices_of_part),
        last_slice(least(num_slices, first_slice + a.slices_of_part)),
        end_step(least(num_steps, last_slice * kSliceSteps)),
        pair(thread() / kWarp % pairs),
        first_row((block().x * row_warps + thread() / kWarp / pairs) * row_tiles * kTileRows),
        lane(thread() % kWarp) {
    for (unsigned t = 0; t < kPairTiles; ++t) tiles[t] = tile(a, group * pairs + pair, t);
  }

  // num_tiles or more: none.
  QUIRE_DEVICE std::uint32_t tile(const LinearArgs& a, std::uint32_t pair_of_all, unsigned t) const {
    if (a.finish != Finish::kGate) return pair_of_all * kPairTiles + t;
    return pair_of_all < num_tiles / 2 ? pair_of_all + t * (num_tiles / 2) : num_tiles;
  }
  QUIRE_DEVICE bool has_tiles() const { return tiles[0] < num_tiles; }
  // Of a lane's number i.
  QUIRE_DEVICE std::uint32_t row(unsigned row_tile, unsigned i) const {
    return first_row + row_tile * kTileRows + lane % 4 * 2 + i % 2;
  }
  QUIRE_DEVICE unsigned output_in_tile(unsigned i) const { return lane / 4 + 8 * (i / 2); }

 private:
  QUIRE_DEVICE static std::uint32_t least(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }
};

template <typename Form, unsigned kRowTiles, unsigned kTiles = kPairTiles>
class LinearTotals {
 public:
  using Sums = typename Form::Sum[kTiles][kRowTiles];

  QUIRE_DEVICE LinearTotals(const LinearArgs& args, const LinearPlace& place) : a_(args), at_(place) {}

  QUIRE_DEVICE void end_slice(std::uint32_t slice, const Sums& sums) {
    if (at_.part == 0) {
      for_each([&](unsigned t, unsigned r, unsigned i) {
        totals_[t][r][i] = joined(totals_[t][r][i], static_cast<float>(sums[t][r].c[i]), slice, r, i);
      });
    } else {
      const std::uint32_t place = slice - a_.slices_of_part + 1;
      for_each([&](unsigned t, unsigned r, unsigned i) { keep(place, t, r, i, static_cast<float>(sums[t][r].c[i])); });
    }
  }

  // Met by all threads of the block.
  QUIRE_DEVICE void finish() {
    if (!is_last_part()) return;
    QUIRE_UNROLLED for (unsigned r = 0; r < kRowTiles; ++r) {
      QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) store(r, i);
    }
  }

  // The same where a warp has one tile of a pair, the first or the second. Factors of gates go from one to the other by way of shared
  // memory: [rows][kFactorStride].
  static constexpr unsigned kFactorStride = kManyRows.pairs * kTileOutputs + 1;
  QUIRE_DEVICE void finish_apart(unsigned tile_of_pair, float* factors) {
    if (!is_last_part()) return;
    const bool gates = a_.finish == Finish::kGate;
    if (gates) {
      sync_block();  // nobody looks at what was there
      if (tile_of_pair == 1) {
        each_apart([&](unsigned r, unsigned i, std::uint32_t output) {
          factors[factor_at(r, i)] = finished(output, totals_[0][r][i]);
        });
      }
      sync_block();
      if (tile_of_pair == 1) return;
    }
    each_apart([&](unsigned r, unsigned i, std::uint32_t output) {
      const float y = finished(output, totals_[0][r][i]);
      if (gates) {
        a_.out[std::size_t{at_.row(r, i)} * (a_.w.n / 2) + output] = gated(y, factors[factor_at(r, i)]);
      } else {
        put(a_.out + std::size_t{at_.row(r, i)} * a_.w.n + output, y);
      }
    });
  }

 private:
  // Then it has all of the totals.
  QUIRE_DEVICE bool is_last_part() {
    if (at_.num_parts == 1) return true;
    if (at_.part == 0) for_each([&](unsigned t, unsigned r, unsigned i) { keep(0, t, r, i, totals_[t][r][i]); });
    std::uint32_t* counter = a_.counters + std::size_t{block().x} * a_.num_groups + at_.group;
    if (!last_to_arrive(counter, at_.num_parts)) return false;
    add_kept();
    return true;
  }
  template <typename Body>
  QUIRE_DEVICE void each_apart(const Body& body) const {
    QUIRE_UNROLLED for (unsigned r = 0; r < kRowTiles; ++r) {
      QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t output = at_.tiles[0] * kTileOutputs + at_.output_in_tile(i);
        if (at_.row(r, i) < a_.num_rows && output < a_.w.n) body(r, i, output);
      }
    }
  }
  QUIRE_DEVICE std::uint32_t factor_at(unsigned r, unsigned i) const {
    return (at_.row(r, i) - at_.first_row) * kFactorStride + at_.pair * kTileOutputs + at_.output_in_tile(i);
  }
  template <typename Body>
  QUIRE_DEVICE static void for_each(const Body& body) {
    QUIRE_UNROLLED for (unsigned t = 0; t < kTiles; ++t) {
      QUIRE_UNROLLED for (unsigned r = 0; r < kRowTiles; ++r) {
        QUIRE_UNROLLED for (unsigned i = 0; i < 4; ++i) body(t, r, i);
      }
    }
  }

  QUIRE_DEVICE float joined(float total, float sum, std::uint32_t slice, unsigned r, unsigned i) const {
    if constexpr (in_integers(Form::kType)) {
      const std::uint32_t row = at_.row(r, i);
      return row < a_.num_rows ? fma(sum, a_.x_scales[std::size_t{row} * at_.num_slices + slice], total) : 0.0f;
    } else {
      return total + sum;
    }
  }

  // What all parts kept; so many slices are read at a time.
  QUIRE_DEVICE void add_kept() {
    constexpr unsigned kSlices = kRowTiles < 8 ? 8 / kRowTiles : 1;
    for_each([&](unsigned t, unsigned r, unsigned i) { totals_[t][r][i] = kept(0, t, r, i); });
    QUIRE_ROLLED for (std::uint32_t slice = a_.slices_of_part; slice < at_.num_slices; slice += kSlices) {
      float sums[kSlices][kTiles][kRowTiles][4];
      QUIRE_UNROLLED for (unsigned s = 0; s < kSlices; ++s) {
        const std::uint32_t place = slice + s - a_.slices_of_part + 1;
        for_each([&](unsigned t, unsigned r, unsigned i) {
          sums[s][t][r][i] = slice + s < at_.num_slices ? kept(place, t, r, i) : 0.0f;
        });
      }
      QUIRE_UNROLLED for (unsigned s = 0; s < kSlices; ++s) {
        if (slice + s < at_.num_slices) {
          for_each([&](unsigned t, unsigned r, unsigned i) {
            totals_[t][r][i] = joined(totals_[t][r][i], sums[s][t][r][i], slice + s, r, i);
          });
        }
      }
    }
  }
  QUIRE_DEVICE bool is_there(unsigned t, unsigned r, unsigned i) const {
    return at_.tiles[t] < at_.num_tiles && at_.row(r, i) < a_.num_rows;
  }
  QUIRE_DEVICE std::size_t kept_at(std::uint32_t place, unsigned t, unsigned r, unsigned i) const {
    const std::size_t row = (std::size_t{place} * at_.num_tiles + at_.tiles[t]) * a_.num_rows + at_.row(r, i);
    return row * kTileOutputs + at_.output_in_tile(i);
  }
  QUIRE_DEVICE void keep(std::uint32_t place, unsigned t, unsigned r, unsigned i, float sum) const {
    if (is_there(t, r, i)) a_.kept[kept_at(place, t, r, i)] = sum;
  }
  QUIRE_DEVICE float kept(std::uint32_t place, unsigned t, unsigned r, unsigned i) const {
    return is_there(t, r, i) ? load_fresh(a_.kept + kept_at(place, t, r, i)) : 0.0f;
  }

  // A number of each tile of the pair.
  QUIRE_DEVICE void store(unsigned r, unsigned i) const {
    const std::uint32_t row = at_.row(r, i);
    if (row >= a_.num_rows) return;
    const std::uint32_t output = at_.tiles[0] * kTileOutputs + at_.output_in_tile(i);
    if (a_.finish == Finish::kGate) {
      const std::uint32_t width = a_.w.n / 2;
      if (output >= width) return;
      const float gate = finished(output, totals_[0][r][i]);
      a_.out[std::size_t{row} * width + output] = gated(gate, finished(width + output, totals_[1][r][i]));
      return;
    }
    float* out = a_.out + std::size_t{row} * a_.w.n + output;
    if (output < a_.w.n) put(out, finished(output, totals_[0][r][i]));
    if (output + kTileOutputs < a_.w.n) put(out + kTileOutputs, finished(output + kTileOutputs, totals_[1][r][i]));
  }
  QUIRE_DEVICE float finished(std::uint32_t output, float total) const {
    float y = total;
    if constexpr (has_output_scales(Form::kType)) y = y * a_.w.scales[output];
    return a_.w.bias == nullptr ? y : y + a_.w.bias[output];
  }
  QUIRE_DEVICE void put(float* out, float y) const { *out = a_.finish == Finish::kAdd ? *out + y : y; }

  const LinearArgs& a_;
  const LinearPlace& at_;
  float totals_[kTiles][kRowTiles][4] = {};
};

}  // namespace quire::gpu
