// Linear layers of rows by expert, each by its own expert's weights: LinearSplit or LinearDot for each tile of rows. A
// row's bits are those of the expert's layer by itself.
// Shape   rows for the tensor cores are put at their slots, others lie by expert; out by expert (routes.h).
// Launch  LinearByExpert: grid.x: tiles of rows, grid.y: pairs of output tiles. LinearDotByExpert: grid.x: outputs,
//         kThreads a block; grid.y: tiles of rows.
// Source  ours.
#pragma once

#include "gpu/kernels/linear_dot.h"
#include "gpu/kernels/linear_split.h"
#include "gpu/kernels/routes.h"

namespace quire::gpu {

// `w` with an expert's numbers.
QUIRE_DEVICE WeightView weight_of_expert(const WeightView& w, const ExpertWeight& expert) {
  WeightView view = w;
  view.numbers = expert.numbers;
  view.scales = expert.scales;
  view.bias = expert.bias;
  view.columns = expert.columns;
  return view;
}

template <typename Form>
struct LinearByExpert {
  using Split = LinearSplit<Form, 1, kPairTiles>;
  struct Args {
    LinearArgs linear;
    ExpertRows experts;
  };
  static constexpr unsigned kThreads = Split::kThreads;
  static constexpr unsigned kMinBlocks = 2;
  static constexpr std::size_t kSharedBytes = Split::kSharedBytes;

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const ExpertTile tile = a.experts.tiles[block().x];
    if (tile.count == 0) return;
    LinearArgs own = a.linear;
    own.w = weight_of_expert(a.linear.w, a.experts.weights[tile.expert]);
    own.x += std::size_t{block().x} * num_steps(own.w.k) * Split::Rows::kStepBytes;
    if (own.x_scales != nullptr) own.x_scales += std::size_t{block().x} * kTileRows * num_slices(own.w.k);
    own.out += std::size_t{tile.first_place} * own.out_width;
    own.num_rows = tile.count;
    Split::run_rows(own, 0, shared, [] {});
  }
};

template <typename Numbers>
struct LinearDotByExpert {
  using Dot = LinearDotOf<Numbers>;
  struct Args {
    typename Dot::Args linear;
    ExpertRows experts;
  };
  static constexpr unsigned kThreads = Dot::kThreads;
  static constexpr unsigned kMinBlocks = 3;  // left to itself, the compiler spills
  static constexpr std::size_t kSharedBytes = Dot::kSharedBytes;
  static_assert(Dot::kRows == kTileRows);

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const ExpertTile tile = a.experts.tiles[block().y];
    if (tile.count == 0) return;
    const auto& linear = a.linear;
    const ExpertWeight& w = a.experts.weights[tile.expert];
    const typename Dot::Part part{{w.numbers, w.scales, w.bias, w.columns},
                                  linear.x + std::size_t{tile.first_place} * linear.w.k,
                                  linear.out + std::size_t{tile.first_place} * linear.out_width,
                                  tile.count};
    Dot::run_part(linear, part, shared);
  }
};

}  // namespace quire::gpu
