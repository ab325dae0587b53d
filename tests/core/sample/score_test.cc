// What a row says of a token that is given: score() of sampler.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/sample/reference.h"
#include "core/sample/sampler.h"
#include "tests/core/sample/rows.h"

namespace quire::sample::score_test {
namespace {

SampledToken score_of(const std::vector<float>& row, TokenId given, std::uint32_t num_top,
                      std::vector<Candidate>& room) {
  Scratch scratch(row.size());
  return score(row, highest_of(row), given, num_top, scratch, room);
}

TEST(Score, IsTheLogProbabilityThatADrawOfTheTokenWouldSay) {
  const std::vector<float> row = bell_row(203, 4.0f, 8);
  const std::vector<double> reference = reference_logprobs(row);
  Scratch scratch(row.size());
  std::vector<Candidate> room(7);
  std::vector<Candidate> other(7);
  for (TokenId token = 0; token < 203; ++token) {
    const SampledToken scored = score_of(row, token, 7, room);
    std::vector<std::uint32_t> only(7);
    only[static_cast<std::size_t>(token) / 32] = 1u << token % 32;
    const SampledToken drawn = draw(row, {.logprob = true, .num_top = 7}, 3, scratch, other, {.allowed = only});
    ASSERT_EQ(drawn.token, token);
    EXPECT_TRUE(scored.finite);
    EXPECT_EQ(scored.token, token);
    EXPECT_EQ(scored.logprob, drawn.logprob);
    EXPECT_NEAR(static_cast<double>(scored.logprob), reference[static_cast<std::size_t>(token)], 2e-6);
    ASSERT_EQ(scored.top.size(), 7u);
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(scored.top[i].token, drawn.top[i].token);
      EXPECT_EQ(scored.top[i].logprob, drawn.top[i].logprob);
    }
  }
}

TEST(Score, RanksByHowManyAreLikelierSoThatTiesShareARank) {
  std::vector<Candidate> room;
  const std::vector<float> row = {1.0f, 3.0f, 2.0f, 3.0f, -kInf, 2.0f};
  const std::uint32_t ranks[] = {5, 1, 3, 1, 6, 3};
  for (TokenId token = 0; token < 6; ++token) EXPECT_EQ(score_of(row, token, 0, room).rank, ranks[token]);
  EXPECT_EQ(score_of(row, 4, 0, room).logprob, -kInf) << "masked, and given all the same";
}

TEST(Score, SaysWhereTheRowIsNotFinite) {
  std::vector<Candidate> room(2);
  for (const std::vector<float>& row : {std::vector<float>{1, kNan}, {1, kInf}, {-kInf, -kInf}}) {
    const SampledToken scored = score_of(row, 0, 2, room);
    EXPECT_FALSE(scored.finite);
    EXPECT_TRUE(scored.top.empty());
  }
}

TEST(ScoreDeathTest, TakesOnlyTokensOfTheRow) {
  std::vector<Candidate> room;
  const std::vector<float> row = bell_row(5, 1.0f, 1);
  EXPECT_EQ(score_of(row, 4, 0, room).token, 4);
  EXPECT_DEATH(score_of(row, 5, 0, room), "CHECK failed");
  EXPECT_DEATH(score_of(row, -1, 0, room), "CHECK failed");
}

}  // namespace
}  // namespace quire::sample::score_test
