// How linear layers are dealt to multiprocessors, and what they cost.
#include "gpu/kernels/linear_grid.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "gpu/costs.h"

namespace quire::gpu::linear_grid_test {
namespace {

using backend::Format;

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

bool has_gates(const Layer& layer) { return std::string(layer.name).ends_with("gate up"); }

TEST(LinearGrid, DealsLayersOf8BNineTenthsEvenlyForUpTo16Rows) {
  for (const Layer& layer : kLayers) {
    for (std::uint32_t rows = 1; rows <= 16; ++rows) {
      const LinearGrid grid = linear_grid(Format::kBF16, layer.n, rows, has_gates(layer), false);
      // 192 tiles, or 96 pairs, on 132 multiprocessors.
      const bool is_uneven = std::string(layer.name) == "1B qkv";
      EXPECT_GE(evenness(grid.blocks()), is_uneven ? 0.72 : 0.89) << layer.name << " " << rows;
    }
  }
}

TEST(LinearGrid, CoversEveryRowAndTileOnce) {
  for (const Format type : {Format::kBF16, Format::kInt4}) {
    for (const std::uint32_t n : {1u, 16u, 17u, 64u, 65u, 128u, 129u, 1000u, 40000u}) {
      for (const std::uint32_t rows : {1u, 8u, 9u, 16u, 17u, 32u, 33u, 64u, 65u, 128u, 129u, 500u}) {
        for (const bool warpgroups : {false, true}) {
          const LinearGrid grid = linear_grid(type, n, rows, false, warpgroups);
          EXPECT_EQ(grid.row_blocks, pieces_of(rows, grid.row_tiles * kTileRows));
          EXPECT_EQ(grid.groups, pieces_of(num_tiles(n), grid.tiles)) << n << " " << rows;
          EXPECT_LE(evenness(grid.blocks()), 1.0);
          if (grid.kernel != LinearKernel::kWide) continue;
          EXPECT_EQ(grid.row_tiles * kTileRows, many_rows(type).rows());
          EXPECT_EQ(grid.tiles, many_rows(type).pairs * kPairTiles);
        }
      }
    }
  }
}

TEST(LinearGrid, TakesWarpgroupsBehind16RowsOfBf16AndBehind32OfCodesWhereTheyAreThere) {
  for (const std::uint32_t n : {16u, 4096u, 128256u}) {
    EXPECT_EQ(linear_grid(Format::kBF16, n, 16, false, true).kernel, LinearKernel::kSplit);
    EXPECT_EQ(linear_grid(Format::kBF16, n, 17, false, true).kernel, LinearKernel::kWarpgroups);
  }
  EXPECT_EQ(linear_grid(Format::kFp8, 128256, 32, false, true).kernel, LinearKernel::kSplit);
  EXPECT_EQ(linear_grid(Format::kFp8, 128256, 33, false, true).kernel, LinearKernel::kWarpgroups);
}

// Of Llama 3.1 8B: 4,096 outputs are 32 blocks of 128, and 64 of 64.
TEST(LinearGrid, HalvesWarpgroupsOutputsWhereMultiprocessorsWouldBeIdleAndTheirRowsUpTo64) {
  struct Case {
    std::uint32_t outputs, rows, tiles, block_rows;
  };
  for (const Case& c : {Case{4096, 64, kFewTiles, 64},
                        {4096, 65, kFewTiles, 128},
                        {4096, 256, kFewTiles, 128},
                        {4096, 512, kManyTiles, 128},
                        {6144, 64, kFewTiles, 64},
                        {28672, 64, kManyTiles, 64},
                        {28672, 65, kManyTiles, 128},
                        {128256, 33, kManyTiles, 64}}) {
    const LinearGrid grid = linear_grid(Format::kBF16, c.outputs, c.rows, false, true);
    EXPECT_EQ(grid.tiles, c.tiles) << c.outputs << " " << c.rows;
    EXPECT_EQ(grid.row_tiles * kTileRows, c.block_rows) << c.outputs << " " << c.rows;
  }
}

TEST(LinearGrid, LeavesCodesOfFewRowsAndOutputsToSingleWarps) {
  for (const Format type : {Format::kInt8, Format::kFp8, Format::kInt4}) {
    EXPECT_EQ(linear_grid(type, 4096, 64, false, true).kernel, LinearKernel::kSplit);
    EXPECT_EQ(linear_grid(type, 4096, 65, false, true).kernel, LinearKernel::kWarpgroups);
    EXPECT_EQ(linear_grid(type, 6144, 64, false, true).kernel, LinearKernel::kWarpgroups);
  }
  EXPECT_EQ(linear_grid(Format::kW8A8, 28672, 500, false, false).kernel, LinearKernel::kWide);
}

TEST(LinearGrid, SplitsInputsOfManyRowsWhereThereAreTooFewOutputsForAllMultiprocessors) {
  EXPECT_EQ(linear_grid(Format::kFp8, 4096, 64, false, false).kernel, LinearKernel::kSplit);
  EXPECT_EQ(linear_grid(Format::kFp8, 4096, 512, false, false).kernel, LinearKernel::kWide);
  EXPECT_EQ(linear_grid(Format::kFp8, 28672, 64, false, false).kernel, LinearKernel::kWide);
}

TEST(LinearGrid, KeepsAGateAndItsFactorInOneBlock) {
  for (const std::uint32_t rows : {1u, 9u, 17u, 40u}) {
    const LinearGrid grid = linear_grid(Format::kBF16, 96, rows, true, false);
    EXPECT_EQ(grid.tiles, 2u);
    EXPECT_EQ(grid.groups, 3u);
  }
}

TEST(LinearCost, IsWeightsRowsAndResults) {
  // 2,048 is a whole number of slices, steps and tiles: nothing fills up.
  const std::uint32_t n = 4096, k = 2048;
  const double rest = 4.0 * 4 * n;
  EXPECT_EQ(linear_cost(Format::kBF16, n, k, 4).bytes, 2.0 * n * k + 2.0 * 4 * k + rest);
  EXPECT_EQ(linear_cost(Format::kInt8, n, k, 4).bytes, 1.0 * n * k + 4.0 * n + 2.0 * 4 * k + rest);
  EXPECT_EQ(linear_cost(Format::kFp8, n, k, 4).bytes, linear_cost(Format::kInt8, n, k, 4).bytes);
  EXPECT_EQ(linear_cost(Format::kInt4, n, k, 4).bytes, 0.5625 * n * k + 2.0 * 4 * k + rest);
  EXPECT_EQ(linear_cost(Format::kW8A8, n, k, 4).bytes, 1.0 * n * k + 4.0 * n + 4.0 * (k + 4.0 * k / 256) + rest);
  EXPECT_EQ(linear_cost(Format::kW4A8, n, k, 4).bytes, 0.5625 * n * k + 4.0 * (k + 4.0 * k / 256) + rest);
  EXPECT_EQ(linear_cost(Format::kInt4, n, k, 4).flops, 2.0 * 4 * n * k);
}

TEST(LinearCost, CountsWhatIsAddedToTwiceAndGatedResultsOnce) {
  const std::uint32_t n = 1024, k = 512, rows = 3;
  const double stored = linear_cost(Format::kBF16, n, k, rows, Finish::kStore).bytes;
  EXPECT_EQ(linear_cost(Format::kBF16, n, k, rows, Finish::kAdd).bytes - stored, 4.0 * n * rows);
  EXPECT_EQ(stored - linear_cost(Format::kBF16, n, k, rows, Finish::kGate).bytes, 2.0 * n * rows);
}

TEST(LinearCost, OfPlainTypesReadsWeightsOncePer8RowsAndRowsOncePer128Outputs) {
  EXPECT_EQ(linear_cost(Format::kF32, 256, 64, 9).bytes, 2 * 4.0 * 256 * 64 + 2 * 4.0 * 9 * 64 + 4.0 * 9 * 256);
  EXPECT_EQ(linear_cost(Format::kF16, 256, 64, 8).bytes, 2.0 * 256 * 64 + 2 * 4.0 * 8 * 64 + 4.0 * 8 * 256);
  EXPECT_EQ(linear_cost(Format::kF32, 256, 64, 0).bytes, 0.0);
}

TEST(LinearCost, OfPreparingRowsIsTheirReadingAndWriting) {
  EXPECT_EQ(linear_rows_cost(Format::kBF16, 4096, 2, false).bytes, 2 * 4096 * 6.0);
  EXPECT_EQ(linear_rows_cost(Format::kInt4, 4096, 2, true).bytes, 2 * 4096 * 6.0 + 4 * 4096);
  EXPECT_EQ(linear_rows_cost(Format::kW4A8, 4096, 2, false).bytes, 2 * (4096 * 5.0 + 16 * 4));
  EXPECT_EQ(linear_rows_cost(Format::kF16, 4096, 2, true).bytes, 0.0);
}

TEST(RowsCost, CountsWhatANormAndAGateReadAndWriteAndNothingForNoRows) {
  EXPECT_EQ(norm_cost(4096, 3).bytes, 4.0 * 4096 * (2 * 3 + 1));
  EXPECT_EQ(norm_cost(4096, 3).flops, linear_rows_cost(Format::kBF16, 4096, 3, true).flops -
                                          linear_rows_cost(Format::kBF16, 4096, 3, false).flops);
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
