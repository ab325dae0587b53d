#include "core/schedule/retention.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

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

}  // namespace
}  // namespace quire::schedule
