// Every number of a cache has one place, and no two share one.
#include "gpu/device/layout.h"

#include <gtest/gtest.h>

#include <set>

namespace quire::gpu::layout_test {
namespace {

TEST(Layout, GivesEachNumberOfACacheAPlaceOfItsOwnWithinItsGroup) {
  for (const backend::KvType type : backend::kAllKvTypes) {
    for (const std::uint32_t dims : {2u, 10u, 16u, 18u, 64u}) {
      const KvLayout layout{1, dims, 16, type};
      std::set<std::uint32_t> of_k;
      std::set<std::uint32_t> of_v;
      for (std::uint32_t slot = 0; slot < 16; ++slot) {
        for (std::uint32_t d = 0; d < layout.width(); ++d) {
          of_k.insert(layout.k_place(slot, d));
          of_v.insert(layout.v_place(slot, d));
        }
      }
      SCOPED_TRACE(backend::name_of(type));
      EXPECT_EQ(of_k.size(), 16u * layout.width());
      EXPECT_EQ(of_v.size(), 16u * layout.width());
      EXPECT_EQ((*of_k.rbegin() + 1) * KvLayout::bits_of(type) / 8, layout.code_bytes());
      EXPECT_EQ((*of_v.rbegin() + 1) * KvLayout::bits_of(type) / 8, layout.code_bytes());
      EXPECT_EQ(layout.group_bytes() % 16, 0u) << "a lane's eight numbers are one load";
    }
  }
}

TEST(Layout, GivesEachGroupOfACachePlacesOfItsOwnWithinItsBlock) {
  for (const backend::KvType type : backend::kAllKvTypes) {
    KvLayout layout{.num_kv_heads = 2, .head_dim = 10, .block_tokens = 32, .type = type};
    layout.block_stride = layout.block_bytes() + 48;  // that of a cache with a larger layer
    std::set<std::size_t> groups;
    for (std::uint32_t head = 0; head < 2; ++head) {
      for (std::uint32_t slot = 0; slot < 96; ++slot) {
        const std::size_t group = layout.group_at(head, slot);
        const std::size_t block = slot / 32 * layout.block_stride;
        EXPECT_EQ(group, layout.group_at(head, slot / 16 * 16));
        EXPECT_EQ((group - block) % layout.group_bytes(), 0u);
        EXPECT_GE(group, block);
        EXPECT_LT(group, block + layout.block_bytes());
        groups.insert(group);
      }
    }
    EXPECT_EQ(groups.size(), 2u * 96 / 16);
    EXPECT_EQ(*groups.rbegin() + layout.group_bytes(), 2 * layout.block_stride + layout.block_bytes());
  }
}

TEST(Layout, PutsWhatALaneWantsOfATileOfKAndVSideBySide) {
  const KvLayout layout{1, 48, 16, backend::KvType::kBF16};
  for (unsigned tile = 0; tile < 3; ++tile) {
    for (unsigned place = 0; place < 256; ++place) {
      const unsigned lane = place / 8;
      const unsigned output = lane / 4 + place % 8 / 2 % 2 * 8;
      const unsigned input = lane % 4 * 2 + place % 2 + place % 8 / 4 * 8;
      EXPECT_EQ(layout.k_place(output, tile * 16 + input), tile * 256 + place);
      EXPECT_EQ(layout.v_place(input, tile * 16 + output), tile * 256 + place);
    }
  }
}

}  // namespace
}  // namespace quire::gpu::layout_test
