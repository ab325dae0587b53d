#include "core/schedule/sequence/retention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "core/base/check.h"
#include "core/kv/block_pool.h"

namespace quire::schedule {
namespace {

using Kind = flow::KvPolicy::Kind;

std::set<std::uint32_t> kept(const std::vector<std::uint16_t>& masks) {
  std::set<std::uint32_t> groups;
  for (std::uint32_t group = 0; group < masks.size() * kSpanGroups; ++group) {
    if (is_kept(masks, group)) groups.insert(group);
  }
  return groups;
}

TEST(Retention, SinksAndWindowStayAndWhatLiesBetweenGoes) {
  const flow::KvPolicy policy{Kind::kSinkWindow, 32, 512};
  std::vector<std::uint16_t> masks;
  for (std::uint32_t span = 1; span <= 8; ++span) {
    retain(policy, span, {}, masks);
    std::set<std::uint32_t> expected{0, 1};
    for (std::uint32_t group = span * 16 > 32 ? span * 16 - 32 : 0; group < span * 16; ++group) expected.insert(group);
    EXPECT_EQ(kept(masks), expected) << "span " << span;
  }
}

TEST(Retention, NothingGoesWhileSinksAndWindowCoverItAll) {
  const flow::KvPolicy policy{Kind::kSinkWindow, 16, 768};
  std::vector<std::uint16_t> masks;
  for (std::uint32_t span = 1; span <= 3; ++span) {
    retain(policy, span, {}, masks);
    EXPECT_EQ(masks, std::vector<std::uint16_t>(span, 0xffff));
  }
  retain(policy, 4, {}, masks);
  EXPECT_EQ(masks, (std::vector<std::uint16_t>{0x0001, 0xffff, 0xffff, 0xffff}));
}

TEST(Retention, HeavyHittersKeepTheMostLookedAtOfTheRestOlderFirstOnTies) {
  const flow::KvPolicy policy{Kind::kHeavyHitters, 16, 256, 48};
  std::vector<std::uint16_t> masks;
  std::vector<std::uint64_t> accumulated_scores(16, 1);
  retain(policy, 1, accumulated_scores, masks);
  EXPECT_EQ(masks, std::vector<std::uint16_t>{0xffff}) << "all of it is recent";
  accumulated_scores.resize(32, 1);
  accumulated_scores[9] = 5;
  retain(policy, 2, accumulated_scores, masks);
  EXPECT_EQ(masks, (std::vector<std::uint16_t>{1u << 0 | 1u << 9 | 1u << 1 | 1u << 2, 0xffff}));
}

TEST(Retention, WhatWasDroppedStaysDroppedAndTheBudgetHolds) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const flow::KvPolicy policy{Kind::kHeavyHitters, 16 * (1 + seed % 3), 256 * (1 + seed % 2), 16 * (seed % 7)};
    std::vector<std::uint16_t> masks;
    std::vector<std::uint64_t> accumulated_scores;
    std::set<std::uint32_t> gone;
    for (std::uint32_t span = 1; span <= 10; ++span) {
      accumulated_scores.resize(span * 16);
      for (std::uint64_t& score : accumulated_scores) score += random() % 10;
      retain(policy, span, accumulated_scores, masks);
      const auto groups = kept(masks);
      EXPECT_LE(groups.size(), policy.sinks / 16 + policy.window / 16 + policy.budget / 16);
      for (std::uint32_t group = 0; group < span * 16; ++group) {
        EXPECT_FALSE(gone.contains(group) && groups.contains(group));
        if (!groups.contains(group)) gone.insert(group);
      }
    }
  }
}

// Blocks of 16 tokens, one for each group.
class RetentionOfASequence : public ::testing::Test {
 protected:
  void compute(std::uint32_t num_tokens) REQUIRES(engine_role) { CHECK(table_.grow_to(num_tokens).ok()); }
  std::uint32_t num_dropped() const {
    return static_cast<std::uint32_t>(std::ranges::count(table_.blocks(), kNoBlock));
  }

  RoleScope role_{engine_role};
  kv::BlockPool pool_{64, 16};
  kv::BlockTable table_{pool_};
};

TEST_F(RetentionOfASequence, ASpanIsNewFromItsFirstRowUntilItIsOpened) {
  const flow::KvPolicy policy{Kind::kSinkWindow, 16, 256};
  Retention retention(policy);
  for (const std::uint32_t position : {0u, 1u, 255u}) EXPECT_FALSE(retention.at_new_span(position)) << position;
  for (const std::uint32_t position : {256u, 257u}) EXPECT_TRUE(retention.at_new_span(position)) << position;
  compute(256);
  retention.open_span(256, table_);
  EXPECT_FALSE(retention.at_new_span(256));
  EXPECT_EQ(retention.kept_groups().size(), 1u);
}

TEST_F(RetentionOfASequence, APolicyThatKeepsAllOpensNoSpan) {
  const flow::KvPolicy policy{};
  EXPECT_FALSE(Retention(policy).at_new_span(4096));
}

TEST_F(RetentionOfASequence, ASpanEndsBehindItsLastRow) {
  for (const std::uint32_t position : {0u, 1u, 255u}) EXPECT_EQ(span_end(position), 256u) << position;
  EXPECT_EQ(span_end(256), 512u);
}

TEST_F(RetentionOfASequence, ABlockOfWhichNothingStaysIsGivenBack) {
  const flow::KvPolicy policy{Kind::kSinkWindow, 16, 256};
  Retention retention(policy);
  compute(512);
  retention.open_span(256, table_);
  EXPECT_EQ(num_dropped(), 0u);
  retention.open_span(512, table_);
  EXPECT_EQ(num_dropped(), 15u) << "of the first span the sinks stay";
  EXPECT_NE(table_.blocks()[0], kNoBlock);
  EXPECT_EQ(pool_.num_held(), 17u);
}

TEST_F(RetentionOfASequence, ABlockStaysAsLongAsOneOfItsGroupsDoes) {
  kv::BlockPool pool(16, 64);
  kv::BlockTable table(pool);
  CHECK(table.grow_to(512).ok());
  const flow::KvPolicy policy{Kind::kSinkWindow, 16, 256};
  Retention retention(policy);
  retention.open_span(256, table);
  retention.open_span(512, table);
  EXPECT_NE(table.blocks()[0], kNoBlock) << "its first group is a sink";
  EXPECT_EQ(std::ranges::count(table.blocks(), kNoBlock), 3);
}

TEST_F(RetentionOfASequence, ScoresOfStepsAddUp) {
  const flow::KvPolicy policy{Kind::kHeavyHitters, 16, 256, 16};
  Retention retention(policy);
  compute(512);
  std::vector<std::uint64_t> scores(16, 1);
  scores[3] = 2;
  retention.add_accumulated_scores(scores);
  retention.open_span(256, table_);
  scores.assign(32, 0);
  scores[7] = 3;  // four with that of the first step
  retention.add_accumulated_scores(scores);
  retention.open_span(512, table_);
  ASSERT_EQ(retention.kept_groups().size(), 2u);
  EXPECT_EQ(retention.kept_groups()[0], 1u << 0 | 1u << 7);
}

TEST_F(RetentionOfASequence, AForkBeginsWithWhatItsParentKeepsAndClearingEndsThat) {
  const flow::KvPolicy policy{Kind::kSinkWindow, 16, 256};
  Retention parent(policy);
  compute(256);
  parent.open_span(256, table_);
  Retention fork(policy);
  fork.share(parent);
  EXPECT_FALSE(fork.at_new_span(256));
  fork.clear();
  EXPECT_TRUE(fork.at_new_span(256));
  EXPECT_FALSE(parent.at_new_span(256));
}

}  // namespace
}  // namespace quire::schedule
