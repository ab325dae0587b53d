#include "gpu/limits.h"

#include <gmock/gmock.h>

#include "gpu/kernels/linear_grid.h"

namespace quire::gpu::limits_test {
namespace {

using backend::KvType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ModelShape shape_with(std::uint32_t num_heads, std::uint32_t head_dim, KvType kv = KvType::kBF16) {
  return {.hidden = 64, .ffn = 96, .num_heads = num_heads, .num_kv_heads = 2, .head_dim = head_dim, .kv = kv};
}

TEST(Limits, AreHeadsOf512DimensionsInEveryTypeOfCache) {
  for (const KvType kv : backend::kAllKvTypes) {
    for (const std::uint32_t dims : {2u, 510u, 512u}) EXPECT_THAT(beyond_limits(shape_with(4, dims, kv)), IsEmpty());
    EXPECT_THAT(beyond_limits(shape_with(4, 514, kv)),
                ElementsAre("head_dim (given, or hidden_size / num_attention_heads) is 514; the maximum is 512"));
  }
}

TEST(Limits, Are128QueryHeadsOfAKvHeadWhereTheTensorCoresTakeThem) {
  for (const KvType kv : backend::kAllKvTypes) {
    for (const std::uint32_t heads : {254u, 256u}) EXPECT_THAT(beyond_limits(shape_with(heads, 64, kv)), IsEmpty());
    const auto beyond = beyond_limits(shape_with(258, 64, kv));
    if (kv == KvType::kF32) {
      EXPECT_THAT(beyond, IsEmpty());
    } else {
      EXPECT_THAT(beyond,
                  ElementsAre("num_attention_heads is 258; the maximum is 128 for each of num_key_value_heads = 2"));
    }
  }
  EXPECT_THAT(beyond_limits(shape_with(258, 256)), ElementsAre(HasSubstr("num_attention_heads")));
  EXPECT_THAT(beyond_limits(shape_with(258, 258)), IsEmpty());  // the plain kernel
}

TEST(Limits, AreSoManyExpertsOfALayerOfARowAndGroupsOfThem) {
  ModelShape shape = shape_with(4, 64);
  shape.num_experts = 512;
  shape.top_experts = 32;
  shape.num_expert_groups = 64;
  EXPECT_THAT(beyond_limits(shape), IsEmpty());
  shape.num_experts = 513;
  shape.top_experts = 33;
  shape.num_expert_groups = 65;
  EXPECT_THAT(beyond_limits(shape), ElementsAre("layers have 513 experts; the maximum is 512",
                                                "layers have 33 experts for a row; the maximum is 32",
                                                "layers have 65 groups of experts; the maximum is 64"));
}

TEST(Limits, AreLayersWithoutLatentAttention) {
  ModelShape shape = shape_with(4, 64);
  shape.has_latent = true;
  EXPECT_THAT(beyond_limits(shape),
              ElementsAre("layers have latent attention (kv_lora_rank), which runs on the CPU alone "
                          "(--device cpu)"));
}

TEST(Limits, AreMatricesOfSoManyOutputsAsAGridIsHigh) {
  constexpr std::uint32_t kMost = 65535 * 32;
  const auto with = [](std::uint32_t hidden, std::uint32_t ffn) {
    ModelShape shape = shape_with(4, 64);
    shape.hidden = hidden;
    shape.ffn = ffn;
    return beyond_limits(shape);
  };
  for (const std::uint32_t most : {kMost - 2, kMost}) EXPECT_THAT(with(most, most / 2), IsEmpty());
  EXPECT_THAT(with(kMost + 1, 1), ElementsAre("hidden_size makes a matrix of 2097121 outputs; the maximum is 2097120"));
  EXPECT_THAT(with(1, kMost / 2 + 1),
              ElementsAre("intermediate_size makes a matrix of 2097122 outputs; the maximum is 2097120"));
  ModelShape wide = shape_with(8188, 512, KvType::kF32);
  EXPECT_THAT(beyond_limits(wide), ElementsAre(HasSubstr("num_attention_heads makes a matrix of 4194304 outputs")));
}

TEST(Limits, KeepEveryGridOfALinearLayerAsLowAsCudasMustBe) {
  for (const backend::Format type : {backend::Format::kBF16, backend::Format::kW4A8}) {
    for (std::uint32_t n = 1; n <= 65535 * 32; n += n / 7 + 1) {
      for (const std::uint32_t rows : {1u, 9u, 17u, 33u, 200u}) {
        for (const bool warpgroups : {false, true}) {
          ASSERT_LE(linear_grid(type, n, rows, false, warpgroups).groups, 65535u) << n << ", " << rows;
        }
      }
    }
    EXPECT_EQ(linear_grid(type, 65535 * 32, 1, false, false).groups, 65535u);
  }
}

}  // namespace
}  // namespace quire::gpu::limits_test
