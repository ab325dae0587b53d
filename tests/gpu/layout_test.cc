// Every number of a cache has one place, and no two share one.
#include "gpu/device/layout.h"

#include <gtest/gtest.h>

#include <set>

namespace quire::gpu {
namespace {

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
