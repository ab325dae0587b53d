// Every number of a weight, and of rows for the tensor cores, has one place, no two share one, and a lane finds its own side by side.
#include "gpu/device/weight_layout.h"

#include <gtest/gtest.h>

#include <set>

namespace quire::gpu::weight_layout_test {
namespace {

using backend::Format;

constexpr Format kTiled[] = {Format::kBF16, Format::kW16A16, Format::kInt8, Format::kInt4,
                             Format::kW8A8, Format::kW4A8,   Format::kFp8};

// Of a step: how many numbers fit where its numbers lie.
std::uint32_t places_of_step(Format type) {
  if (in_nibbles(type)) return kNibbleBytes * 2;
  return has_output_scales(type) ? step_bytes(type) : step_bytes(type) / 2;
}

TEST(WeightLayout, FillsAStepWithItsNumbersLeavingNoPlaceOut) {
  for (const Format type : kTiled) {
    std::set<std::uint32_t> places;
    for (std::uint32_t output = 0; output < kTileOutputs; ++output) {
      for (std::uint32_t input = 0; input < kStepInputs; ++input) places.insert(place_in_step(type, output, input));
    }
    EXPECT_EQ(places.size(), kTileOutputs * kStepInputs) << backend::name_of(type);
    EXPECT_EQ(*places.rbegin() + 1, places_of_step(type)) << backend::name_of(type);
  }
}

TEST(WeightLayout, GivesEachGroupsScaleTheTwoBytesBehindTheNibbles) {
  std::set<std::uint32_t> places;
  for (std::uint32_t output = 0; output < kTileOutputs; ++output) {
    for (std::uint32_t input = 0; input < kStepInputs; ++input) {
      const std::uint32_t place = scale_in_step(output, input);
      EXPECT_EQ(place, scale_in_step(output, input / kGroupInputs * kGroupInputs));
      EXPECT_EQ(place % 2, 0u);
      places.insert(place);
    }
  }
  EXPECT_EQ(places.size(), kTileOutputs * 2u);
  EXPECT_EQ(*places.begin(), kNibbleBytes);
  EXPECT_EQ(*places.rbegin() + 2, step_bytes(Format::kInt4));
}

TEST(WeightLayout, GivesEachStepBytesOfItsOwnOnABoundaryThatALaneCanLoadFrom) {
  for (const Format type : kTiled) {
    for (const std::uint32_t n : {1u, 16u, 17u, 33u, 128u, 129u, 300u}) {
      for (const std::uint32_t k : {1u, 63u, 64u, 65u, 300u}) {
        std::set<std::size_t> starts;
        for (std::uint32_t tile = 0; tile < num_tiles(n); ++tile) {
          for (std::uint32_t step = 0; step < num_steps(k); ++step)
            starts.insert(step_at(step_bytes(type), n, k, tile, step));
        }
        std::size_t next = 0;
        for (const std::size_t start : starts) {
          EXPECT_EQ(start, next);
          EXPECT_EQ(start % 16, 0u);
          next += step_bytes(type);
        }
        EXPECT_EQ(number_bytes(type, n, k), next) << backend::name_of(type) << " " << n << " " << k;
      }
    }
  }
}

TEST(WeightLayout, PutsAStepOfAllTilesOfAGroupSideBySide) {
  const std::uint32_t n = 16 * 11, k = 256;
  for (const std::uint32_t first : {0u, 8u}) {
    EXPECT_EQ(tiles_of_group(n, first), first == 0 ? 8u : 3u);
    for (std::uint32_t tile = first; tile < first + tiles_of_group(n, first); ++tile) {
      for (std::uint32_t step = 0; step < 4; ++step) {
        const std::size_t away = std::size_t{step} * tiles_of_group(n, first) + tile - first;
        EXPECT_EQ(step_at(2048, n, k, tile, step), step_at(2048, n, k, first, 0) + away * 2048);
      }
    }
  }
}

TEST(WeightLayout, GivesEachNumberOfAPlainWeightAPlaceOfItsOwn) {
  for (const std::uint32_t n : {1u, 31u, 32u, 33u}) {
    std::set<std::size_t> places;
    for (std::uint32_t output = 0; output < n; ++output) {
      for (std::uint32_t input = 0; input < 5; ++input) places.insert(place_in_columns(n, output, input));
    }
    EXPECT_EQ(places.size(), n * 5u);
    EXPECT_LT(*places.rbegin() * 4, number_bytes(Format::kF32, n, 5));
    EXPECT_EQ(number_bytes(Format::kF32, n, 5), 2 * number_bytes(Format::kF16, n, 5));
  }
}

TEST(WeightLayout, PutsWhatALaneWantsOfATileOfBf16SideBySide) {
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    for (unsigned word = 0; word < 4; ++word) {
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned output = lane / 4 + 8 * (word % 2);
        const unsigned input = lane % 4 * 2 + half + 8 * (word / 2);
        EXPECT_EQ(place_in_tile(output, input), lane * 8 + word * 2 + half);
        for (unsigned part = 0; part < 4; ++part) {
          EXPECT_EQ(place_in_step(Format::kBF16, output, part * 16 + input), part * 256 + lane * 8 + word * 2 + half);
        }
      }
    }
  }
}

TEST(WeightLayout, PutsAllOfALanesCodesOfAStepIntoItsOwnSixteenBytes) {
  for (std::uint32_t output = 0; output < kTileOutputs; ++output) {
    for (std::uint32_t input = 0; input < kStepInputs; ++input) {
      EXPECT_EQ(place_in_step(Format::kInt8, output, input) % 512 / 16, output % 8 * 4 + input % 8 / 2);
      EXPECT_EQ(place_in_step(Format::kInt4, output, input) / 32, output % 8 * 4 + input % 8 / 2);
      EXPECT_EQ(place_in_step(Format::kW8A8, output, input) % 512 / 16, output % 8 * 4 + input % 16 / 4);
      EXPECT_EQ(place_in_step(Format::kW4A8, output, input) / 32, output % 8 * 4 + input % 16 / 4);
    }
  }
}

TEST(WeightLayout, GivesEachNumberOfARowAPlaceOfItsOwn) {
  for (const auto place_of : {place_in_rows, place_in_integer_rows}) {
    for (const std::uint32_t k : {1u, 64u, 65u, 200u}) {
      std::set<std::size_t> places;
      for (std::uint32_t row = 0; row < 17; ++row) {
        for (std::uint32_t input = 0; input < num_steps(k) * kStepInputs; ++input) {
          places.insert(place_of(k, row, input));
        }
      }
      EXPECT_EQ(places.size(), 17u * num_steps(k) * kStepInputs);
      EXPECT_LT(*places.rbegin(), 24u * num_steps(k) * kStepInputs);
    }
  }
}

}  // namespace
}  // namespace quire::gpu::weight_layout_test
