// Every number of a weight and of a cache has one place, and no two share one.
#include "gpu/device/layout.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace quire::gpu {
namespace {

using backend::WeightType;

TEST(Layout, GivesEachNumberOfAWeightAPlaceOfItsOwn) {
  for (const WeightType type : {WeightType::kF32, WeightType::kBF16, WeightType::kInt8, WeightType::kW16A16}) {
    for (const std::uint32_t n : {1u, 15u, 16u, 17u, 33u}) {
      for (const std::uint32_t k : {1u, 15u, 16u, 17u, 40u}) {
        std::set<std::size_t> places;
        for (std::uint32_t output = 0; output < n; ++output) {
          for (std::uint32_t input = 0; input < k; ++input) places.insert(place_of_weight(type, n, k, output, input));
        }
        EXPECT_EQ(places.size(), std::size_t{n} * k) << backend::name_of(type) << " " << n << " " << k;
        EXPECT_LT(*places.rbegin(), num_places(type, n, k));
      }
    }
  }
}

TEST(Layout, PutsWhatALaneWantsOfATileOfWeightsSideBySide) {
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    for (unsigned word = 0; word < 4; ++word) {
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned output = lane / 4 + 8 * (word % 2);
        const unsigned input = lane % 4 * 2 + half + 8 * (word / 2);
        EXPECT_EQ(place_in_tile(output, input), lane * 8 + word * 2 + half);
      }
    }
  }
}

TEST(Layout, GivesEachNumberOfACacheAPlaceOfItsOwnWithinItsBlock) {
  const KvLayout layout{.num_blocks = 3, .num_kv_heads = 2, .head_dim = 10, .block_tokens = 32};
  std::set<std::size_t> places;
  for (std::uint32_t layer = 0; layer < 2; ++layer) {
    for (std::uint32_t head = 0; head < 2; ++head) {
      for (std::uint32_t slot = 0; slot < 96; ++slot) {
        for (std::uint32_t d = 0; d < 10; ++d) {
          for (const std::size_t place : {layout.k_at(layer, head, slot, d), layout.v_at(layer, head, slot, d)}) {
            places.insert(place);
            EXPECT_GE(place, layout.block_at(layer, slot / 32));
            EXPECT_LT(place, layout.block_at(layer, slot / 32) + layout.block_size());
          }
        }
      }
    }
  }
  EXPECT_EQ(places.size(), 2u * 2 * 96 * 10 * 2);
  EXPECT_EQ(*places.rbegin() + 1, layout.block_at(2, 0));
}

}  // namespace
}  // namespace quire::gpu
