#include "core/speculate/children.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "core/sample/noise.h"
#include "core/sample/reference.h"

namespace quire::speculate::children_test {
namespace {

std::vector<float> falling_logprobs(std::uint32_t seed, std::uint32_t num) {
  std::mt19937 random(seed);
  std::vector<float> values(num);
  double sum = 0.0;
  for (float& value : values) {
    value = static_cast<float>(random() % 1000) * 0.006f;
    sum += std::exp(static_cast<double>(value));
  }
  for (float& value : values) value -= static_cast<float>(std::log(sum));
  std::ranges::sort(values, std::greater<>());
  return values;
}

void fill(Children& children, const std::vector<float>& logprobs) {
  children.clear();
  for (std::size_t i = 0; i < logprobs.size(); ++i) children.add(static_cast<TokenId>(3 * i), logprobs[i]);
}

TEST(Children, AreTheLikeliestOfAGreedyRequest) {
  Children children;
  fill(children, falling_logprobs(1, 10));
  const std::span<const Child> found = children.likeliest(3);
  ASSERT_EQ(found.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(found[i].token, static_cast<TokenId>(3 * i));
}

// Were the head's logits the target's, the first child would be what the target draws: always.
TEST(Children, BeginWithTheTokenThatTheSameNoiseDraws) {
  Children children;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const std::vector<float> logprobs = falling_logprobs(seed, 40);
    const sample::Params params{
        .temperature = 0.3f + 0.01f * static_cast<float>(seed), .seed = seed, .choice_index = 2};
    double best = -1e300;
    TokenId drawn = -1;
    for (std::size_t i = 0; i < logprobs.size(); ++i) {
      const auto token = static_cast<TokenId>(3 * i);
      const double z = static_cast<double>(logprobs[i] / params.temperature) +
                       static_cast<double>(sample::gumbel(seed, token, 9, 2, sample::Domain::kTarget));
      if (z > best) {
        best = z;
        drawn = token;
      }
    }
    fill(children, logprobs);
    EXPECT_EQ(children.drawn(1, params, 9).front().token, drawn);
  }
}

TEST(Children, ShareOneAmongThem) {
  Children children;
  fill(children, falling_logprobs(5, 30));
  double sum = 0.0;
  for (const Child& child : children.drawn(30, {.temperature = 0.8f, .seed = 4}, 3)) {
    sum += std::exp(static_cast<double>(child.log_likely));
  }
  EXPECT_NEAR(sum, 1.0, 1e-5);
}

TEST(Children, StayWithinTheRequestsFilters) {
  Children children;
  const std::vector<float> logprobs = falling_logprobs(6, 30);
  const auto highest_token = [&](const sample::Params& params) {
    fill(children, logprobs);
    TokenId highest = -1;
    for (const Child& child : children.drawn(30, params, 3)) highest = std::max(highest, child.token);
    return highest;
  };
  EXPECT_EQ(highest_token({.temperature = 1.0f}), 87);
  EXPECT_EQ(highest_token({.temperature = 1.0f, .top_k = 4}), 9);
  EXPECT_EQ(highest_token({.temperature = 1.0f, .top_p = 1e-6f}), 0);
  EXPECT_EQ(highest_token({.temperature = 1.0f, .min_p = 1.0f}), 0);
  double mass = 0.0;
  std::size_t kept = 0;
  while (mass < 0.5) mass += std::exp(static_cast<double>(logprobs[kept++]));
  EXPECT_EQ(highest_token({.temperature = 1.0f, .top_p = 0.5f}), static_cast<TokenId>(3 * (kept - 1)));
}

// ---- under ratio and block

sample::Params by_rejection(std::uint64_t seed, float temperature = 0.8f) {
  return {.temperature = temperature, .seed = seed, .accept = sample::Accept::kRatio};
}

constexpr ChildRequest wanted(std::uint32_t num, std::uint32_t drafter = 0) {
  return {.num = num, .position = 9, .depth = 2, .drafter = drafter};
}

TEST(Children, ProposedHaveTheDistributionOfTheDraftTokensAsTheRequestFiltersThem) {
  const std::vector<float> logprobs = falling_logprobs(3, 12);
  Children children;
  for (sample::Params params : {by_rejection(1), by_rejection(1, 1.7f)}) {
    for (const std::int32_t top_k : {0, 5}) {
      params.top_k = top_k;
      const std::vector<double> expected = sample::reference_distribution(logprobs, params);
      fill(children, logprobs);
      sample::ProposalDistributions distributions;
      ASSERT_EQ(children.proposed(wanted(1), params, distributions).size(), 1u);
      ASSERT_EQ(distributions.size(), 1u);
      std::vector<double> distribution(logprobs.size());
      for (const sample::TokenProbability& one : distributions.of(0))
        distribution.at(static_cast<std::size_t>(one.token / 3)) += one.chance;
      for (std::size_t i = 0; i < distribution.size(); ++i) EXPECT_NEAR(distribution[i], expected[i], 1e-6) << i;
    }
  }
}

// Pairs of siblings: as often as their laws say, the second's for each first one of its own.
TEST(Children, ProposedAreDrawnFromTheirDistributionsAndNoneTwice) {
  constexpr int kDraws = 60'000;
  const std::vector<float> logprobs = falling_logprobs(4, 5);
  const std::vector<double> distribution = sample::reference_distribution(logprobs, by_rejection(0));
  Children children;
  sample::ProposalDistributions distributions;
  std::vector<int> counts(25);
  for (int seed = 0; seed < kDraws; ++seed) {
    fill(children, logprobs);
    distributions.clear();
    const std::span<const Child> drawn =
        children.proposed(wanted(2), by_rejection(static_cast<std::uint64_t>(seed)), distributions);
    ASSERT_EQ(drawn.size(), 2u);
    ASSERT_EQ(distributions.size(), 2u);
    const auto first = static_cast<std::size_t>(drawn[0].token / 3);
    const auto second = static_cast<std::size_t>(drawn[1].token / 3);
    ASSERT_NE(first, second);
    ++counts[first * 5 + second];
    ASSERT_EQ(distributions.of(1).size(), 4u);
    for (const sample::TokenProbability& one : distributions.of(1)) {
      const auto token = static_cast<std::size_t>(one.token / 3);
      ASSERT_NE(token, first);
      ASSERT_NEAR(one.chance, distribution[token] / (1.0 - distribution[first]), 1e-5);
    }
    for (const Child& child : drawn) EXPECT_LE(child.log_likely, 1e-6f);
  }
  for (std::size_t i = 0; i < 25; ++i) {
    if (i % 5 == i / 5) continue;
    const double expected = kDraws * distribution[i / 5] * distribution[i % 5] / (1.0 - distribution[i / 5]);
    EXPECT_NEAR(counts[i], expected, 5.0 * std::sqrt(expected) + 1.0) << i;
  }
}

TEST(Children, ProposedAreAsManyAsAreWantedWhateverTheFiltersLeave) {
  const std::vector<float> logprobs = falling_logprobs(5, 7);
  Children children;
  for (const std::uint32_t num : {1u, 4u, 7u, 9u}) {
    for (const std::int32_t top_k : {1, 3, 4, 5, 0}) {
      sample::Params params = by_rejection(3);
      params.top_k = top_k;
      fill(children, logprobs);
      sample::ProposalDistributions distributions;
      const std::span<const Child> found = children.proposed(wanted(num), params, distributions);
      ASSERT_EQ(found.size(), std::min(num, 7u));
      ASSERT_EQ(distributions.size(), found.size());
      const std::size_t left = top_k == 0 ? 7 : static_cast<std::size_t>(top_k);
      std::set<TokenId> tokens;
      for (std::size_t i = 0; i < found.size(); ++i) {
        tokens.insert(found[i].token);
        EXPECT_EQ(distributions.of(static_cast<std::uint32_t>(i)).size(), i < left ? left - i : 0);
        // Behind the draws the likeliest that is not there.
        if (i >= left) {
          EXPECT_EQ(found[i].token, static_cast<TokenId>(3 * i));
        }
      }
      EXPECT_EQ(tokens.size(), found.size());
    }
  }
}

TEST(Children, OfSeveralDraftersAreDrawnApart) {
  const std::vector<float> logprobs(16, std::log(1.0f / 16));
  Children children;
  sample::ProposalDistributions distributions;
  int same = 0;
  for (std::uint64_t seed = 0; seed < 1600; ++seed) {
    fill(children, logprobs);
    const TokenId one = children.proposed(wanted(1, 0), by_rejection(seed), distributions)[0].token;
    fill(children, logprobs);
    same += children.proposed(wanted(1, 1), by_rejection(seed), distributions)[0].token == one;
  }
  EXPECT_NEAR(same, 100, 50);
}

TEST(Children, ProposedOfNothingAreNone) {
  Children children;
  children.clear();
  sample::ProposalDistributions distributions;
  EXPECT_TRUE(children.proposed(wanted(3), by_rejection(1), distributions).empty());
  EXPECT_EQ(distributions.size(), 0u);
  EXPECT_TRUE(distributions.of(0).empty());
}

TEST(Children, OfARowThatIsNotFiniteAreNoneUnlessTheyAreDrawn) {
  Children children;
  sample::ProposalDistributions distributions;
  const backend::Choice choice{-1, false};
  children.list(choice, 3, {.temperature = 1.0f});
  EXPECT_TRUE(children.chosen(wanted(3), {.temperature = 1.0f}, distributions).empty());
  children.list(choice, 3, by_rejection(1));
  EXPECT_EQ(children.chosen(wanted(3), by_rejection(1), distributions).size(), 3u);
  for (const sample::TokenProbability& one : distributions.of(0)) EXPECT_NEAR(one.chance, 1.0f / 3.0f, 1e-6f);
}

TEST(Children, AreDrawnUnderRejectionSamplingAlone) {
  Children children;
  for (const sample::Params& params : {by_rejection(1), by_rejection(1, 0.0f), sample::Params{.temperature = 1.0f},
                                       sample::Params{.temperature = 0.0f}}) {
    sample::ProposalDistributions distributions;
    fill(children, falling_logprobs(1, 10));
    EXPECT_EQ(children.chosen(wanted(3), params, distributions).size(), 3u);
    EXPECT_EQ(distributions.size(), sample::accepts_by_rejection(params) ? 3u : 0u);
  }
}

}  // namespace
}  // namespace quire::speculate::children_test
