#include "core/sample/adjustment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "tests/core/sample/rows.h"
#include "tests/support/plain_rules.h"

namespace quire::sample::adjustment_test {
namespace {

using ::testing::UnorderedElementsAre;

constexpr std::size_t kVocab = 70;

std::shared_ptr<const Rules> shared(Rules rules) { return std::make_shared<const Rules>(std::move(rules)); }

std::vector<TokenId> forbidden_after(const Rules& rules, const std::vector<TokenId>& answer,
                                     const std::vector<TokenId>& ends = {}) {
  Adjustment adjustment(shared(rules), std::vector<TokenId>{5, 6}, ends, 10);
  for (std::size_t i = 0; i < answer.size(); ++i) adjustment.append(std::span(answer).first(i + 1));
  const std::span<const TokenId> forbidden = adjustment.edits().forbidden;
  return {forbidden.begin(), forbidden.end()};
}

std::vector<Rules> many_rules() {
  std::vector<Rules> all(8);
  all[0].repetition_penalty = 1.3f;
  all[1].repetition_penalty = 0.6f;
  all[2].frequency_penalty = 0.7f;
  all[3].presence_penalty = -1.5f;
  all[4].bias = {{0, 3.5f}, {7, -100.0f}, {69, 0.1f}};
  all[5].allowed = {0, 1, 31, 32, 33, 63, 64, 69};
  all[6].bad_words = {{4}, {1, 2}, {1, 1, 1}, {3, 9, 3, 9}};
  all[6].min_tokens = 5;
  all[7] = {1.1f, 0.2f, 0.3f, {{3, 1.0f}, {12, -2.0f}}, {1, 2, 3, 9, 12, 40}, {{3, 3}, {9}}, 3};
  return all;
}

TEST(Adjustment, GivesAtEveryTokenWhatTheRulesSayOfTheTokensSoFar) {
  std::mt19937 random(3);
  Scratch scratch(kVocab);
  for (const Rules& rules : many_rules()) {
    for (int turn = 0; turn < 20; ++turn) {
      const auto token = [&] { return static_cast<TokenId>(random() % (turn % 2 == 0 ? 4 : kVocab)); };
      std::vector<TokenId> prompt(1 + random() % 30);
      for (TokenId& one : prompt) one = token();
      const std::vector<TokenId> ends = {1, 50};
      std::vector<TokenId> answer;
      Adjustment adjustment(shared(rules), prompt, ends, 40);
      for (int i = 0; i < 40; ++i) {
        const std::vector<float> row = bell_row(kVocab, 3.0f, static_cast<std::uint32_t>(random()));
        const std::span<const float> got = adjust(row, adjustment.edits(), scratch);
        const std::vector<float> expected = quire::testing::plainly_adjusted(row, rules, prompt, answer, ends);
        ASSERT_EQ(std::vector<float>(got.begin(), got.end()), expected) << "token " << i;
        answer.push_back(token());
        adjustment.append(answer);
      }
    }
  }
}

TEST(Adjustment, ForbidsTheLastTokenOfABadWordOnlyAfterItsOthers) {
  const Rules rules{.bad_words = {{7, 8, 9}, {8, 2}, {4}}};
  EXPECT_THAT(forbidden_after(rules, {}), UnorderedElementsAre(4));
  EXPECT_THAT(forbidden_after(rules, {7}), UnorderedElementsAre(4));
  EXPECT_THAT(forbidden_after(rules, {7, 8}), UnorderedElementsAre(4, 9, 2));
  EXPECT_THAT(forbidden_after(rules, {7, 8, 1}), UnorderedElementsAre(4));
  EXPECT_THAT(forbidden_after(rules, {7, 7, 8}), UnorderedElementsAre(4, 9, 2));
}

TEST(Adjustment, LooksForBadWordsInTheAnswerAlone) {
  EXPECT_THAT(forbidden_after({.bad_words = {{5, 6, 1}, {6, 2}}}, {}), UnorderedElementsAre());
}

TEST(Adjustment, ForbidsTheEndBeforeMinTokensAndNoLonger) {
  const Rules rules{.min_tokens = 2};
  EXPECT_THAT(forbidden_after(rules, {}, {3, 4}), UnorderedElementsAre(3, 4));
  EXPECT_THAT(forbidden_after(rules, {9}, {3, 4}), UnorderedElementsAre(3, 4));
  EXPECT_THAT(forbidden_after(rules, {9, 9}, {3, 4}), UnorderedElementsAre());
  EXPECT_THAT(forbidden_after(rules, {9, 9, 9}, {3, 4}), UnorderedElementsAre());
}

TEST(Adjustment, ChangesNothingWhereTheRulesAskForNothing) {
  Adjustment adjustment(shared({}), std::vector<TokenId>{1, 2}, {3}, 4);
  EXPECT_TRUE(adjustment.edits().empty());
  adjustment.append(std::vector<TokenId>{9});
  EXPECT_TRUE(adjustment.edits().empty());
}

}  // namespace
}  // namespace quire::sample::adjustment_test
