// How linear layers are dealt to multiprocessors, and what they cost.
#include "gpu/kernels/linear_grid.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "gpu/costs.h"

namespace quire::gpu::linear_grid_test {
namespace {

using backend::WeightType;

struct Layer {
  const char* name;
  std::uint32_t n;
  std::uint32_t k;
};
// Of Llama 3.1 8B and 3.2 1B.
constexpr Layer kLayers[] = {{"8B qkv", 6144, 4096},   {"8B out", 4096, 4096},      {"8B gate up", 28672, 4096},
                             {"8B down", 4096, 14336}, {"8B head", 128256, 4096},   {"1B qkv", 3072, 2048},
                             {"1B out", 2048, 2048},   {"1B gate up", 16384, 2048}, {"1B down", 2048, 8192},
                             {"1B head", 128256, 2048}};

TEST(LinearGrid, DealsLayersOf8BAnd1BNineTenthsEvenlyForUpTo16RowsButOne) {
  for (const Layer& layer : kLayers) {
    for (std::uint32_t rows = 1; rows <= 16; ++rows) {
      const LinearGrid grid = linear_grid(WeightType::kBF16, layer.n, layer.k, rows);
      // 192 blocks on 132 multiprocessors: smaller ones would read rows of more than 8 twice as often.
      const bool is_uneven = std::string(layer.name) == "1B qkv" && rows > 8;
      EXPECT_GE(grid.evenness(), is_uneven ? 0.72 : 0.9) << layer.name << " " << rows;
    }
  }
}

TEST(LinearGrid, KeepsEnoughWarpsUnderWayForFewRowsWhereTheWorkIsEnough) {
  for (const Layer& layer : kLayers) {
    const LinearGrid grid = linear_grid(WeightType::kBF16, layer.n, layer.k, 1);
    const double warps = 1.0 * grid.blocks() * kFewRows.warps() / kMultiprocessors;
    // All of a small layer's slices are blocks of their own.
    EXPECT_TRUE(warps >= 0.97 * kFewRows.wanted_warps || grid.slices_of_part == 1) << layer.name << " " << warps;
  }
}

TEST(LinearGrid, CoversEveryRowTileAndSliceOnce) {
  for (const WeightType type : {WeightType::kBF16, WeightType::kInt4})
    for (const std::uint32_t n : {1u, 16u, 17u, 64u, 65u, 128u, 129u, 1000u}) {
      for (const std::uint32_t k : {1u, 256u, 257u, 5000u}) {
        for (const std::uint32_t rows : {1u, 8u, 9u, 16u, 17u, 32u, 33u, 128u, 129u, 500u}) {
          const LinearGrid grid = linear_grid(type, n, k, rows);
          const LinearShape shape = linear_shape(type, rows);
          EXPECT_EQ(grid.row_blocks, pieces_of(rows, shape.rows()));
          EXPECT_GE(grid.groups * shape.pairs * kPairTiles, num_tiles(n));
          EXPECT_LT((grid.groups - 1) * shape.pairs * kPairTiles, num_tiles(n));
          EXPECT_GE(grid.parts() * grid.slices_of_part, num_slices(k));
          EXPECT_LT((grid.parts() - 1) * grid.slices_of_part, num_slices(k));
          EXPECT_LE(grid.evenness(), 1.0);
          EXPECT_EQ(grid.parts() == 1, num_kept(grid, n, rows) == 0);
        }
      }
    }
}

TEST(LinearGrid, ChangesItsKernelBehind8And16And32Rows) {
  EXPECT_EQ(linear_shape(WeightType::kBF16, 8).row_tiles, 1u);
  EXPECT_EQ(linear_shape(WeightType::kBF16, 9).row_tiles, 2u);
  EXPECT_EQ(linear_shape(WeightType::kBF16, 16).row_tiles, 2u);
  EXPECT_EQ(linear_shape(WeightType::kBF16, 17).row_tiles, 4u);
  EXPECT_EQ(linear_shape(WeightType::kBF16, 32).row_tiles, 4u);
  EXPECT_EQ(linear_shape(WeightType::kBF16, 33).rows(), 128u);
  EXPECT_EQ(linear_shape(WeightType::kW4A8, 33).rows(), 64u);
}

TEST(LinearCost, IsWeightsRowsAndResultsAndKeptSumsBesides) {
  // 2,048 is a whole number of slices, steps and tiles: nothing fills up.
  const std::uint32_t n = 4096, k = 2048;
  const LinearGrid grid = linear_grid(WeightType::kBF16, n, k, 4);
  ASSERT_GT(grid.parts(), 1u);
  const double rest = 4.0 * 4 * n;
  EXPECT_EQ(linear_cost(WeightType::kBF16, n, k, 4).bytes, 2.0 * n * k + 2.0 * 4 * k + rest);
  EXPECT_EQ(linear_cost(WeightType::kInt8, n, k, 4).bytes, 1.0 * n * k + 4.0 * n + 2.0 * 4 * k + rest);
  EXPECT_EQ(linear_cost(WeightType::kFp8, n, k, 4).bytes, linear_cost(WeightType::kInt8, n, k, 4).bytes);
  EXPECT_EQ(linear_cost(WeightType::kInt4, n, k, 4).bytes, 0.5625 * n * k + 2.0 * 4 * k + rest);
  EXPECT_EQ(linear_cost(WeightType::kW8A8, n, k, 4).bytes, 1.0 * n * k + 4.0 * n + 4.0 * (k + 4.0 * k / 256) + rest);
  EXPECT_EQ(linear_cost(WeightType::kW4A8, n, k, 4).bytes, 0.5625 * n * k + 4.0 * (k + 4.0 * k / 256) + rest);
  EXPECT_EQ(linear_cost(WeightType::kInt4, n, k, 4).flops, 2.0 * 4 * n * k);
  EXPECT_EQ(kept_bytes(WeightType::kBF16, n, k, 4), 2.0 * 4 * 4 * n * grid.kept_sums());
  EXPECT_EQ(kept_bytes(WeightType::kF32, n, k, 4), 0.0);
}

TEST(LinearCost, CountsWhatIsAddedToTwiceAndGatedResultsOnce) {
  const std::uint32_t n = 1024, k = 512, rows = 3;
  const double stored = linear_cost(WeightType::kBF16, n, k, rows, Finish::kStore).bytes;
  EXPECT_EQ(linear_cost(WeightType::kBF16, n, k, rows, Finish::kAdd).bytes - stored, 4.0 * n * rows);
  EXPECT_EQ(stored - linear_cost(WeightType::kBF16, n, k, rows, Finish::kGate).bytes, 2.0 * n * rows);
}

TEST(LinearCost, OfPlainTypesReadsWeightsOncePer8RowsAndRowsOncePer128Outputs) {
  EXPECT_EQ(linear_cost(WeightType::kF32, 256, 64, 9).bytes, 2 * 4.0 * 256 * 64 + 2 * 4.0 * 9 * 64 + 4.0 * 9 * 256);
  EXPECT_EQ(linear_cost(WeightType::kF16, 256, 64, 8).bytes, 2.0 * 256 * 64 + 2 * 4.0 * 8 * 64 + 4.0 * 8 * 256);
  EXPECT_EQ(linear_cost(WeightType::kF32, 256, 64, 0).bytes, 0.0);
}

TEST(LinearCost, OfPreparingRowsIsTheirReadingAndWriting) {
  EXPECT_EQ(linear_rows_cost(WeightType::kBF16, 4096, 2, false).bytes, 2 * 4096 * 6.0);
  EXPECT_EQ(linear_rows_cost(WeightType::kInt4, 4096, 2, true).bytes, 2 * 4096 * 6.0 + 4 * 4096);
  EXPECT_EQ(linear_rows_cost(WeightType::kW4A8, 4096, 2, false).bytes, 2 * (4096 * 5.0 + 16 * 4));
  EXPECT_EQ(linear_rows_cost(WeightType::kF16, 4096, 2, true).bytes, 0.0);
}

TEST(RowsCost, CountsWhatANormAndAGateReadAndWriteAndNothingForNoRows) {
  EXPECT_EQ(norm_cost(4096, 3).bytes, 4.0 * 4096 * (2 * 3 + 1));
  EXPECT_EQ(norm_cost(4096, 3).flops, linear_rows_cost(WeightType::kBF16, 4096, 3, true).flops -
                                          linear_rows_cost(WeightType::kBF16, 4096, 3, false).flops);
  EXPECT_EQ(norm_cost(4096, 0).bytes, 0.0);
  EXPECT_EQ(act_mul_cost(14336, 2).bytes, 4.0 * 3 * 14336 * 2);
}

TEST(LeastSeconds, IsTheLongerOfBytesAndFlopsAndABeginning) {
  const Rates rates{.bytes_per_s = 1000, .flops_per_s = 100, .launch_s = 2};
  EXPECT_EQ(least_seconds({.bytes = 5000, .flops = 499}, rates), 7.0);
  EXPECT_EQ(least_seconds({.bytes = 5000, .flops = 501}, rates), 7.01);
}

}  // namespace
}  // namespace quire::gpu::linear_grid_test
