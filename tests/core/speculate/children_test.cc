#include "core/speculate/children.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/sample/noise.h"
#include "core/sample/reference.h"

namespace quire::speculate {
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

sample::Params by_law(std::uint64_t seed, float temperature = 0.8f) {
  return {.temperature = temperature, .seed = seed, .accept = sample::Accept::kRatio};
}

TEST(Children, ProposedHaveTheLawOfTheGuessesAsTheRequestFiltersThem) {
  const std::vector<float> logprobs = falling_logprobs(3, 12);
  Children children;
  for (sample::Params params : {by_law(1), by_law(1, 1.7f)}) {
    for (const std::int32_t top_k : {0, 5}) {
      params.top_k = top_k;
      const std::vector<double> expected = sample::reference_law(logprobs, params);
      fill(children, logprobs);
      sample::ProposalLaws laws;
      ASSERT_EQ(children.proposed(params, 9, 1, laws).size(), 1u);
      ASSERT_EQ(laws.size(), 1u);
      std::vector<double> law(logprobs.size());
      for (const sample::Likelihood& one : laws.of(0)) law.at(static_cast<std::size_t>(one.token / 3)) += one.chance;
      for (std::size_t i = 0; i < law.size(); ++i) EXPECT_NEAR(law[i], expected[i], 1e-6) << i;
    }
  }
}

TEST(Children, ProposedAreDrawnFromTheirLaw) {
  constexpr int kDraws = 40'000;
  const std::vector<float> logprobs = falling_logprobs(4, 8);
  Children children;
  sample::ProposalLaws laws;
  std::vector<int> counts(logprobs.size());
  for (int seed = 0; seed < kDraws; ++seed) {
    fill(children, logprobs);
    laws.clear();
    const std::span<const Child> drawn = children.proposed(by_law(static_cast<std::uint64_t>(seed)), 9, 2, laws);
    ++counts.at(static_cast<std::size_t>(drawn[0].token / 3));
    EXPECT_LE(drawn[0].log_likely, 1e-6f);
  }
  for (const sample::Likelihood& one : laws.of(0)) {
    const double expected = kDraws * static_cast<double>(one.chance);
    EXPECT_NEAR(counts.at(static_cast<std::size_t>(one.token / 3)), expected, 5.0 * std::sqrt(expected) + 1.0);
  }
}

TEST(Children, ProposedOfNothingAreNone) {
  Children children;
  children.clear();
  sample::ProposalLaws laws;
  EXPECT_TRUE(children.proposed(by_law(1), 9, 1, laws).empty());
  EXPECT_EQ(laws.size(), 0u);
  EXPECT_TRUE(laws.of(0).empty());
}

TEST(Children, ChainsAloneAreDrawnAndOnlyByLaw) {
  EXPECT_TRUE(draws_guesses(by_law(1), 1));
  EXPECT_FALSE(draws_guesses(by_law(1), 2));
  EXPECT_FALSE(draws_guesses(by_law(1, 0.0f), 1));
  EXPECT_FALSE(draws_guesses({.temperature = 1.0f}, 1));
}

}  // namespace
}  // namespace quire::speculate
