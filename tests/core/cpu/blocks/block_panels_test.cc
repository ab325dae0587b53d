// Panels of blocks: what is packed is read back, bit for bit, in no more memory than the header says.
#include "core/cpu/blocks/block_panels.h"

#include "core/cpu/blocks/float_panels.h"
#include "core/cpu/pack.h"
#include "core/cpu/tensors.h"
#include "tests/core/cpu/blocks/plain_blocks.h"

namespace quire::cpu::test::block_panels_test {
namespace {

TEST(BlockPanels, GiveBackTheNumbersOfTheBlocks) {
  Random random(51);
  for (const BlockLayout& layout : backend::block_layouts()) {
    const std::uint32_t tail = layout.elements == 256 ? 0 : layout.elements == 32 ? 96 : layout.elements;
    for (const std::uint32_t k : {layout.elements, 512u, 768u + tail}) {
      Matrix w = random_blocks(random, layout, 19, k);
      for (std::size_t i = 0; i < w.bits.size(); i += 7) w.bits[i] = static_cast<std::uint8_t>(random.below(256));
      backend::widen_blocks(layout.type, reinterpret_cast<const std::byte*>(w.bits.data()), w.values);
      const auto ops = make_ops("auto", 1);
      const auto packed = pack(*ops, w, std::nullopt);
      std::vector<float> row(k);
      for (std::uint32_t n = 0; n < w.n; ++n) {
        unpack_row(dynamic_cast<const PackedWeight&>(*packed), n, row.data());
        EXPECT_TRUE(same_bits(row, std::span(w.values).subspan(std::size_t{n} * k, k))) << layout.name << " row " << n;
      }
    }
  }
}

TEST(BlockPanels, TakeTheBitsOfTheirCodesAndScales) {
  const auto bits_per_number = [](BlockType type) {
    const bool in_floats = backend::layout_of(type).is_in_floats();
    const auto bytes_of = in_floats ? float_panel_bytes : block_panel_bytes;
    return static_cast<double>(bytes_of(type, 2048)) * 8 / (2048 * kLanes);
  };
  EXPECT_EQ(bits_per_number(BlockType::kQ4_0), 4.5);
  EXPECT_EQ(bits_per_number(BlockType::kQ4_1), 5.0);
  EXPECT_EQ(bits_per_number(BlockType::kQ8_0), 8.5);
  EXPECT_EQ(bits_per_number(BlockType::kQ4_K), 4.625);
  EXPECT_EQ(bits_per_number(BlockType::kQ5_K), 5.625);
  EXPECT_EQ(bits_per_number(BlockType::kQ6_K), 6.625);
  EXPECT_EQ(bits_per_number(BlockType::kQ2_K), 3.125);
  EXPECT_EQ(bits_per_number(BlockType::kQ3_K), 3.625);
  EXPECT_EQ(bits_per_number(BlockType::kInt4G128), 4.25);
  EXPECT_EQ(bits_per_number(BlockType::kUint4G128), 4.375);
  EXPECT_EQ(bits_per_number(BlockType::kUint4G32), 5.25);
  EXPECT_EQ(bits_per_number(BlockType::kInt3G128), 3.25);
  EXPECT_EQ(bits_per_number(BlockType::kFp8G128), 8.25);
  EXPECT_EQ(bits_per_number(BlockType::kNf4G64), 4.5);
  for (const BlockLayout& layout : backend::block_layouts()) {
    EXPECT_LE(bits_per_number(layout.type), 1.2 * 8 * layout.bytes / layout.elements) << layout.name;
  }
}

TEST(BlockPanels, AreQuantisedAnewFromTheirNumbers) {
  Random random(52);
  for (const BlockLayout& layout : backend::block_layouts()) {
    const Matrix w = random_blocks(random, layout, 40, 512);
    const Matrix widened = make_matrix(w.n, w.k, Format::kF32, w.values);
    for (const Format format : backend::kQuantizedFormats) {
      const auto ops = make_ops("auto", 1);
      const auto of_blocks = pack(*ops, w, format);
      const auto of_numbers = pack(*ops, widened, format);
      ASSERT_EQ(of_blocks->packed().size(), of_numbers->packed().size());
      EXPECT_EQ(std::memcmp(of_blocks->packed().data(), of_numbers->packed().data(), of_blocks->packed().size()), 0)
          << layout.name << " to " << backend::name_of(format);
    }
  }
}

TEST(BlockPanels, AreTheOnesThatTheLayoutsNumberStandsFor) {
  // As PackedWeight.ItsBytesAreTheOnesThatTheLayoutsNumberStandsFor: a number that changes wants another kLayout.
  ASSERT_STREQ(PackedWeight::kLayout, "cpu panels/2");
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, of all types
  Random random(53);
  for (const BlockLayout& layout : backend::block_layouts()) {
    if (layout.type == BlockType::kNVFP4) {
      EXPECT_EQ(hash, 10107861180484951817u);  // of the types before it
    }
    if (layout.type == BlockType::kInt2G32) {
      EXPECT_EQ(hash, 11582760345755084335u);
    }
    const Matrix w = random_blocks(random, layout, 19, 256 + 2 * std::max(layout.elements, 64u));
    const auto ops = make_ops("auto", 1);
    const auto packed = pack(*ops, w, std::nullopt);
    for (const std::byte b : packed->packed()) {
      hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
    }
  }
  EXPECT_EQ(hash, 2891364252382888314u);
}

}  // namespace
}  // namespace quire::cpu::test::block_panels_test
