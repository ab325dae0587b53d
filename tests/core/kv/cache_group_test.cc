#include "core/kv/cache_group.h"

#include <gtest/gtest.h>

#include <vector>

namespace quire::kv {
namespace {

using Kind = CacheGroup::Kind;

TEST(CacheGroup, ARowOfAFullGroupReadsAllPositions) {
  for (const std::uint32_t position : {0u, 1u, 1000u}) EXPECT_EQ(CacheGroup{}.first_needed(position), 0u);
}

TEST(CacheGroup, ARowOfAWindowReadsItselfAndTheOnesJustBefore) {
  constexpr CacheGroup kThree{Kind::kWindow, 3};
  const std::vector<std::uint32_t> expected = {0, 0, 0, 1, 2, 3};
  for (std::uint32_t p = 0; p < expected.size(); ++p) EXPECT_EQ(kThree.first_needed(p), expected[p]) << p;
  constexpr CacheGroup kOne{Kind::kWindow, 1};
  for (const std::uint32_t p : {0u, 1u, 7u}) EXPECT_EQ(kOne.first_needed(p), p) << "itself alone";
}

TEST(CacheGroup, ARowOfAChunkReadsFromTheBeginningOfItsChunk) {
  constexpr CacheGroup kThree{Kind::kChunk, 3};
  const std::vector<std::uint32_t> expected = {0, 0, 0, 3, 3, 3, 6};
  for (std::uint32_t p = 0; p < expected.size(); ++p) EXPECT_EQ(kThree.first_needed(p), expected[p]) << p;
}

TEST(CacheGroup, AWindowIsReservedWithAStepAndAFullGroupWhole) {
  for (const CacheGroup& group : {CacheGroup{Kind::kWindow, 10}, CacheGroup{Kind::kChunk, 10}}) {
    EXPECT_EQ(group.reserved_tokens(13, 0, 4), 13u);
    EXPECT_EQ(group.reserved_tokens(14, 0, 4), 14u);
    EXPECT_EQ(group.reserved_tokens(15, 0, 4), 14u);
    EXPECT_EQ(group.reserved_tokens(100, 10, 4), 14u);
    EXPECT_EQ(group.reserved_tokens(100, 11, 4), 15u);
  }
  EXPECT_EQ(CacheGroup{}.reserved_tokens(100, 0, 4), 100u);
}

// A sequence that gives back what it no longer reads, in steps of any size, from any multiple of `align` on.
TEST(CacheGroup, ASequenceNeverHoldsMoreBlocksThanTheMost) {
  for (const CacheGroup& group : {CacheGroup{}, CacheGroup{Kind::kWindow, 5}, CacheGroup{Kind::kWindow, 1},
                                  CacheGroup{Kind::kChunk, 7}, CacheGroup{Kind::kWindow, 40}}) {
    for (const std::uint32_t block_tokens : {1u, 3u, 4u, 8u}) {
      for (const std::uint32_t step : {1u, 4u, 9u}) {
        for (const std::uint32_t align : {1u, 4u}) {
          for (std::uint32_t begin = 0; begin < 60; ++begin) {
            const std::uint32_t end = std::min(begin + step, 60u);
            const std::uint32_t first = group.first_needed(begin - begin % align) / block_tokens;
            const std::uint32_t held = blocks_for(end, block_tokens) - first;
            EXPECT_LE(held, group.most_blocks(60, step, align, block_tokens)) << begin;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace quire::kv
