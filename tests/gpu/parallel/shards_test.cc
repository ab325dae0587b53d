// Who has what: every output, column and head is on one rank, and together they are the whole.
#include "gpu/parallel/shards.h"

#include <gmock/gmock.h>

#include <set>

#include "gpu/gpu_ops.h"

namespace quire::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Shards, GiveEverythingToOneRankAndLieSideBySide) {
  for (std::uint32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (const std::uint32_t each : {1u, 2u, 7u, 100u}) {
      std::uint32_t next = 0;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const Shard shard = shard_of(each * ranks, rank, ranks);
        EXPECT_EQ(shard.first, next);
        EXPECT_EQ(shard.count, each);
        next += shard.count;
      }
      EXPECT_EQ(next, each * ranks);
    }
  }
}

TEST(Shards, CutWhatDividesEvenlyAndLeaveTheRestWhole) {
  for (std::uint32_t ranks = 2; ranks <= kMostRanks; ++ranks) {
    const std::uint32_t n = 6 * ranks;
    EXPECT_FALSE(is_cut(std::vector{n - 1}, ranks));
    EXPECT_TRUE(is_cut(std::vector{n}, ranks));
    EXPECT_FALSE(is_cut(std::vector{n + 1}, ranks));
    EXPECT_FALSE(is_cut(std::vector{n, n + 1, n}, ranks));
    EXPECT_TRUE(is_cut(std::vector{n, 2 * ranks, ranks}, ranks));
    EXPECT_FALSE(is_cut(std::vector{n, n, n, n}, ranks));  // more matrices than kernels know
    EXPECT_FALSE(is_cut(std::vector{0u}, ranks));
    EXPECT_EQ(outputs_of_rank(n, ranks), 6u);
    EXPECT_EQ(outputs_of_rank(n + 1, ranks), n + 1);
  }
}

// Column by column: where a rank's own lies among all, matrix by matrix.
TEST(Shards, PutEveryRanksColumnsWhereTheWholeMatricesHaveThem) {
  const std::vector<std::vector<std::uint32_t>> kinds = {{24}, {24, 24}, {48, 24, 24}, {24, 72, 48}};
  for (const std::vector<std::uint32_t>& outputs : kinds) {
    for (const std::uint32_t ranks : {1u, 2u, 3u, 4u, 8u}) {
      const Columns columns = columns_of(outputs, ranks);
      std::set<std::uint32_t> seen;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        std::uint32_t c = 0;
        std::uint32_t matrix_begins = 0;
        for (const std::uint32_t n : outputs) {
          const Shard shard = shard_of(n, rank, ranks);
          for (std::uint32_t i = 0; i < shard.count; ++i, ++c) {
            EXPECT_EQ(gathered_column(columns, ranks, rank, c), matrix_begins + shard.first + i);
            seen.insert(gathered_column(columns, ranks, rank, c));
          }
          matrix_begins += n;
        }
        EXPECT_EQ(c, columns.width());
      }
      EXPECT_EQ(seen.size(), columns.width() * ranks);
      EXPECT_EQ(*seen.rbegin() + 1, columns.width() * ranks);
    }
  }
}

TEST(Shards, GiveARankTheQueryHeadsOfItsKvHeads) {
  backend::AttentionSpec spec;
  spec.num_heads = 24;
  spec.num_kv_heads = 8;
  spec.head_dim = 16;
  for (const std::uint32_t ranks : {1u, 2u, 4u, 8u}) {
    const backend::AttentionSpec shard = shard_of(spec, ranks);
    EXPECT_EQ(shard.qkv_width() * ranks, spec.qkv_width());
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const Shard heads = shard_of(spec.num_heads, rank, ranks);
      const Shard kv_heads = shard_of(spec.num_kv_heads, rank, ranks);
      for (std::uint32_t h = 0; h < heads.count; ++h) {
        const std::uint32_t of_whole = (heads.first + h) / (spec.num_heads / spec.num_kv_heads);
        EXPECT_EQ(kv_heads.first + h / (shard.num_heads / shard.num_kv_heads), of_whole);
      }
    }
  }
}

TEST(Shards, OfACacheAreTogetherAsLargeAsTheWhole) {
  for (const backend::KvType type : backend::kAllKvTypes) {
    const backend::KvShape whole{backend::kv_layers(3, 8, 32), 16, 10, type, 5};
    for (const std::uint32_t ranks : {1u, 2u, 4u, 8u}) {
      const backend::KvShape shard = shard_of(whole, ranks);
      EXPECT_EQ(ranks * kv_block_bytes(shard), kv_block_bytes(whole));
      EXPECT_EQ(ranks * kv_residual_group_bytes(shard), kv_residual_group_bytes(whole));
    }
  }
}

TEST(Shards, SayWhatNumberOfRanksIsPossible) {
  EXPECT_THAT(problems_of_ranks(8, 0), ElementsAre("tensor-parallel-size 0 is outside [1, 8]"));
  EXPECT_THAT(problems_of_ranks(8, 1), IsEmpty());
  EXPECT_THAT(problems_of_ranks(8, 8), IsEmpty());
  EXPECT_THAT(problems_of_ranks(9, 9), ElementsAre("tensor-parallel-size 9 is outside [1, 8]"));
  EXPECT_THAT(problems_of_ranks(8, 3),
              ElementsAre("tensor-parallel-size 3 does not divide num_key_value_heads, 8 in this model: choose one of "
                          "1, 2, 4, 8"));
  EXPECT_THAT(problems_of_ranks(3, 4),
              ElementsAre("tensor-parallel-size 4 does not divide num_key_value_heads, 3 in this model: choose one of "
                          "1, 3"));
  EXPECT_THAT(problems_of_ranks(4, 4), IsEmpty());
  EXPECT_EQ(problems_of_ranks(5, 4).size(), 1u);
}

}  // namespace
}  // namespace quire::gpu
